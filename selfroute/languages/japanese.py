"""The rules that recognise a decline in Japanese.

Tested only on examples that we wrote ourselves, not on real replies.
"""

from __future__ import annotations

from selfroute.languages.language import Language

_CHINESE = """是 为 為 于 這 这 沒 们 們 从 從 对 對 关 说 說 该 个 与 发 后 你 他 她 它 把 被 将 则 规 问 题 时
    间 还 进 过 吗 并 无 办 业 东 车 长 门 见 议 记 论 设 证 评 语 请 调 谁 转 那 书 仅 传 几 很 给 两"""

WORDS = {
    # Names of the source, and of what is looked for in it.
    "text": """本文 全文 文中 文章 本書 原文 文 文書 文脈 文献 文面 書面 書類 書籍 書中 一節 一文 一部 部分 箇所
        範囲 パート テキスト テクスト コンテキスト コンテクスト パッセージ パラグラフ チャンク ブロック セグメント
        スニペット フラグメント 断片 節 章 段落 項 項目 抜粋 引用 ソース 情報源 出典 出所 ドキュメント ファイル
        セクション ページ 頁 資料 素材 記事 記録 記述 情報 内容 データ データセット コンテンツ 背景 表 図 一覧 目録
        要約 概要 梗概 論文 論考 レポート 報告 報告書 年次報告書 四半期報告書 財務諸表 決算書 決算短信 決算資料
        有価証券報告書 目論見書 届出書 開示資料 開示書類 提出書類 注記 脚注 議事録 会議録 発表文 プレスリリース
        リリース ニュース 通知 案内 要項 手引き マニュアル ガイド 説明書 仕様書 指針 ガイドライン 条例 条文 条項
        定款 規程 レシピ 小説 物語 作中 エッセイ 伝記 戯曲 詩 脚本 台本 会話 対話 インタビュー 書き起こし 検索結果
        結果 事例 著者 筆者 編者 作者 語り手 経営陣の検討 経営陣による検討""",
    "work": "契約書 約款 規約 条例 法令 小説 書籍 年報 判決 カタログ",
    "info": """情報 記載 記述 言及 手がかり 手掛かり データ 箇所 該当 詳細 描写 明示 質問の答え 質問に対する回答
        質問に対する答え 質問への答え 質問への回答""",
    "told": """説明 規定 定め 答え 回答 解答 内容 もの 名前 氏名 名称 数値 記録 一節 文章 会話 定義 議論 論述 引用
        比較 予測 予想 見通し 内訳 証拠 根拠 分析 考察 発言 セリフ 指摘 推定 具体例 金額""",
    "given": """提供 与え いただ 頂い 示され 示した 提示 添付 参照 手元 検索 取得 抽出 入手 共有 渡され 掲載 公開
        指定 上記 以下 下記 引用 今回 該当 前述 現在 利用可能""",
    "this": "すべての 全ての 数 これらの それらの この その 本 これら どの いずれの 各 上の 前の 当該 同 ご 全 財務 第",
    "question": "質問 尋ね 問い合わせ 照会",
    # Particles, and the endings of verbs.
    "in": "の および 及び 中 内 上 ら たち だけ のみ 全体 自体 や と , 0 1 2 3 4 5 6 7 8 9 10",
    "where": "に で から だけ のみ 中 内 上 どこ いずれ どちら",
    "at": "に は で から も を が だけ のみ 中 内 上 いずれ どこ どちら まで",
    "particle": "は が を も に か と 点 など ついて つい 関して 関する まで でしたら ことは ことも",
    "kana": """さ れ て い お り ら か え る き で し げ け べ に っ は が す こ と つ み め わ せ ち あ も を く 出
        た ま う よ ろ び む""",
    "ending": "た の が も よ か し で け と , . :",
    # Characters that verbs are written with: verbs of saying, and (if the source is named) of knowing and containing.
    "tell": """開示 記 載 述 書 触 言 及 明 示 語 説 定 報 告 指 掲 登 扱 伝 挙 義 紹 介 論 議 規 詳 かれ のっ
        取り上げ 描写 描か 検討 考察 探求 分析 概説 特定 具体 列挙 列記 引用 網羅 カバー 強調 話題 解説 区分 区別
        細分 分けられ 暗示 反映 答え""",
    "rendered": "提供 提示 予測 予想 要約 定量化 比較",
    "outright": "明示 明記 明確に 明示的に 具体的に 詳細に 詳しく 個別に",
    "judge": """録 認 特 判 断 読 取 回 答 分 わか 見つ 見当 見 導 出 推 測 計 算 申し 上げ 案 内 調 別 探 把 握 含
        得 引 登 場 存 在 応 確 知 描 提供 提示 比較 評価 焦点 解説 関係 関連 裏付け 支持""",
    "adverb": """お ご 明確 明示的 具体的 直接 直接的 個別 別個 単独 詳細 何も どこ 一切 全く まったく 特に 特段
        詳し はっきり 正確 いずれ 何ら 十分 必要 的 に は も な の く 具体 , とは 関連 関する 該当する 該当 これ以上
        少し ほとんど 全然 実際 特定 これ それ 明記 地域別 事業別 製品別 国別 部門別 年度別""",
    "describes": "論じて 述べて 説明して 扱って 当てて 取り上げて 紹介して 描いて 関するもの ついてのもの",
    "unknown": "何とも言え わか 分か 判り 存じ 知り 答え お答え 回答 判断 特定 判別 確認",
    "doing": "し いた でき する こと ことは が り ら れ え か つき で き",
    "certain": "断定 確定 お答え 特定 判断 確認 回答 推測 判別",
    # Fillers, and words of sentences that answer after all.
    "hedge": "申し訳 すみません すいません 残念 恐れ入 恐縮 大変 せっかく ごめん 遺憾 失礼 あいにく",
    "asking": "かどうか 誰が 誰に いつ なぜ いくら 何人 何年 どう 判断 分かり わかり 不明 十分 答え 特定 確認",
    "then": "しかし ただし ですが 一方 なお したがって そのため よって また だが けれども しかしながら",
    "worked_out": "計算 算出 わかります 分かります 求め 足す 足し 引く 引き 読み取れます",
    "offer": "ん 供 頂 願 提 認 訳 ぬ 限 般",
    "though": "んが すが たが だが いが るが ものの 一方 おり あり のみで けれども けれど",
    "fine": "です ます でした ました である だった だ なる した",
    "any": "*",
    "comma": ",",
    "number": " ".join(map(str, range(1, 100))) + " 18* 19* 20*",
    "inside": """ませる まる まった まで まれ また または まま まち まず ずれ あるいは もしくは 与え 関与 付与 給与 寄与
        賞与 供与 授与 行為 為替 被験 被害 被告 被保 将来 将軍 把握 その他 他の 他に 他社 他者 他国 他人 他方 該当 当該
        皇后 是正 是非""",
    # Where a phrase ends: at polite endings and Chinese characters; a topic also ends at its particle.
    "ends": f"ま は {_CHINESE}",
    "stops": f", は ま {_CHINESE}",
}

PARTS = {
    # A sentence names its topic, then the source, then what is not said. A topic ends at its particle.
    "topic": "({any} | {inside}) {rest}",
    "rest": "(-{stops} | {inside})*",
    "phrase": "(-{ends} | {inside})*",
    # A phrase about the topic: "of the price", "on the price".
    "as_to": "{phrase} {particle} {particle}* ,? {adverb}*",
    "from": "{text} {in}* (から | で | に) {this}*",
    "page": "({this} {number}?)* {from}? ({given} {topic})? ({work} の)? {text} ({text} | {in})*",
    "source": "({topic} の)? {page} {where} {at}* ,?",
    "within": "{page} {at} {at}* ,?",
    # "According to the text," and "the text says this, but".
    "lead": "({topic} の)? {page} (によ | に基 | から | を | に従 | で | に照) (-{comma})* , | {page} (に | で"
    " | にあるの)? は ,? ... ({though} ,? | (です | ます | ました) . ({then} ,?)? | {describes} {kana}* ます .)"
    " | {topic} (につ い ては? .. | に? は) {adverb}* ({tell} | 出) ({tell} | {kana})* {though} ,",
    # Negated verbs: to say or know, to say, to be said, to exist.
    "not": "(ません | おらず | なく | ない {ending} | なかった {ending} | かね)",
    "tells_not": "({tell} | {judge}) ({tell} | {judge} | {kana})* {not}",
    "telling_not": "({tell} | {rendered}) ({tell} | {kana})* て {kana}* {not} | 出 て {kana}* {not}",
    "told_not": "{tell} ({tell} | {kana})* (れ て | っ て | か て) {kana}* {not}",
    "absent": "(あり | ござい | (提 供 | 行 わ れ) {kana}* | {judge} ({judge} | {kana})*)? {not}",
    "none": "(なし | 無し)",
    "to_question": "({this}* 質問 (の | へ の | に 対 する | に 対 して の))?",
    "label": "{to_question} (最終 | 私の)* (回答 | 答え | 答 | 解答 | 結論 | 結果 | 判定)",
    "opener": "((いいえ | いえ | いや) (, | .)"
    " | {hedge} ... (, | .) {number}? | {then} ,? | {lead} | 本件 に 関 する 限り ,"
    " | ({topic} を)? (この | その | ご | お) {question} ... (が | は) ,)*",
}

JAPANESE = Language(
    name="Japanese",
    words=WORDS,
    parts=PARTS,
    start="{opener}",
    labels=("({then} ,?)* {label} (: | . | は ((次 の | 以下 の) (とおり | 通り) です)? :?)",),
    answers=(
        "(-{comma})* ため (です | でした | だ)? .",  # because
        "(-{comma})* (ない | ません) と (述べ | 言 | 語 | 話 | 答え) (-{comma})* .",
        "{topic} が (-{comma})* て い? ません でした .",  # of a letter, say; what a text tells is in the present
        "... (ません でした | ません | ない | なかった) です? (が | {though}) ,? (-{offer})* ({fine} | {number}) .",
        "... {not} ... . {then} ,? (-{offer})* {worked_out} (-{offer})* .",
        "{then} ,? (-{offer})* {worked_out} (-{offer})* .",
    ),
    no="いいえ | いえ | いや",
    asks=("{asking} | か (は | を | が | も | に つ い て | ど う か) | {not} か",),
    declines=(
        # The source does not say, whatever the topic.
        "({source} | ({topic} の)? {within} | {lead}) {as_to}? {telling_not}",
        "{source} {adverb}* {as_to}? ({tells_not} | 不明)",
        "{lead} {topic} (は | が | を) {adverb}* {telling_not}",
        "{lead} {rest} は ,? {as_to} {outright} ({tell} | {kana})* {not}",
        "{topic} は ,? {within} {as_to} {telling_not}",
        "{topic} {particle} {particle}* ,? {within} {adverb}* {tells_not}",
        # What was asked for is not stated.
        "{topic} (は | が | につ い ては | まで は) ,? {adverb}* {told_not}",
        "{topic} は ,? ({certain} {kana}* でき | わかり | 分かり) ません (. | ,)",
        "{topic} を {adverb}* ({certain} | 計算 | 算出 | 見つけ) {kana}* でき {kana}* {not} (. | ,)",
        "{topic} か (どうか)? (は | を | も | まで)* ,? {within}? {adverb}* ({tells_not} | 不明)",
        "{adverb}* {told_not}",
        # There is no such information.
        "(({source} | {lead}) {phrase} | {topic} {particle}*)? {info} {particle}* しか? {within}? {adverb}* {absent}",
        "({source} | {lead}) {phrase} {told} {particle}* しか? {adverb}* {absent}",
        "{topic}? {told} {particle}* {within} {adverb}* {absent}",
        (
            "({topic} :)? ({source} {phrase} | {topic} {particle}*)? {info} {particle}* (不足 | 欠 | {none} (. | ,)"
            " | 足り {not})"
        ),
        "{topic}? ({info} | 説明 | 答え | 回答 | 案内) (を | は | が | も) 見 (つ | 当) {kana}* {not}",
        "({topic} に は)? ((さら に | 追加 の | より 多く の) {info} | 全文) が 必要",
        "{page} は ,? {rest} 前 (まで)? で (終わ | 途切)",
        "{topic} は どこ に も ({tell} | {judge} | 出) ({tell} | {judge} | {kana})* {not}",
        "{page} は {phrase} 十分 (な {kana}*)? で は (あり)? {not}",
        "{topic} {particle}* ,? {within} (ない {ending} | ありま せん)",
        # The model does not know.
        "((私 に は)? {unknown} {doing}* | 見つか り) {not} ます? で? し? た? .",
        "(この | その | ご) 質問 には? (お? 答え | 回答) {kana}* {not}",
        "({topic} は)? 不明 (です)? .",
        "{page} は ,? {this}* {question} (と は? | に) 直接? (の | 的 な)? (関係 | 関連) (が | の)? (あり | な)",
        (
            "({page} を ... {though} ,? | {page} は ,? ... (おり | あり) ,) {topic} (は | が) ({tells_not} | 見 (つ"
            " | 当) {kana}* {not})"
        ),
        "{topic} は ,? ({page} 外 で す | {within} {adverb}* 不明)",
        "(回答 | 判断 | 特定) (不能 | 不可)",
    ),
)
