"""How models decline in Japanese."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # What the answer is read from, and what is looked for in it.
    "text": """指針 発表文 要項 案内 手引き マニュアル 通知 条例 目録 名簿 一覧 表 図 本文 文中 文章 文書 文脈
        文献 テキスト コンテキスト コンテクスト パッセージ ドキュメント スニペット ソース 抜粋 段落 資料 記事 情報
        内容 部分 箇所 範囲 条文 条項 章 節 ページ 頁 書類 書面 出典 検索結果 要約 議事録 会議録 記録 論文 報告書
        本書 原文 全文 定款 レシピ 規程 データ 注記 引用 著者 編者 筆者 作者""",
    "work": "契約書 約款 規約 条例 法令 小説 書籍 年報 判決 カタログ",
    "info": """情報 記載 記述 言及 手がかり 手掛かり データ 箇所 該当 詳細 描写 明示 質問の答え 質問に対する回答
        質問に対する答え""",
    "told": "説明 規定 定め 答え 回答 解答 根拠 内容 もの 名前 名 数値 証拠 記録",
    "given": "提供 与え いただ 頂い 示され 提示 添付 参照 手元 検索 上記 以下 引用 今回 該当",
    "this": "数 これらの この その 本 これら どの いずれの 上の 当該 同 ご",
    "question": "質問 尋ね 問い合わせ 照会",
    # Particles, and the endings of verbs.
    "in": "の 中 内 上 だけ のみ 全体 , 1 2 3 4 5 6 7 8 9 10",
    "where": "に で から を だけ のみ 中 内 上",
    "at": "に は で から も を が だけ のみ 中 内 上 いずれ まで",
    "particle": "は が を も に か と 点 ついて つい 関して 関する まで でしたら ことは",
    "kana": """さ れ て い お り ら か え る き で し げ け べ に っ は が す こ と つ み め わ せ ち あ も を く
        出 た ま""",
    "ending": "た の が も よ か し で け , . :",
    # Verbs, by their characters.
    "tell": "開示 記 載 述 書 触 言 及 明 示 語 説 定 報 告 指 掲 登 扱 伝 挙 義 紹 介 論 議 規 かれ のっ",
    "judge": """録 認 特 判 断 読 取 回 答 分 わか 見つ 見当 見 導 出 推 測 計 算 申し 上げ 案 内 調 別 探 把 握
        含 得 引 登 場 存 在 応 確 知 描""",
    "adverb": """明確 明示的 具体的 直接 直接的 何も どこ 一切 全く まったく 特に 詳し はっきり 正確 いずれ 何ら
        十分 必要 的 に は も な の く 具体 詳細 , とは 関連 関する 該当する 該当 これ以上 少し""",
    "unknown": "何とも言え わか 分か 判り 存じ 知り 答え お答え 回答 判断 特定 判別 確認",
    "doing": "し いた でき する こと ことは が り ら れ え か つき で き",
    "know": "断定 確定 お答え 特定 判断 確認 計算 回答 算出 推測 判別 推定",
    # Fillers, and how a sentence goes on that is no decline.
    "hedge": "申し訳 すみません すいません 残念 恐れ入 恐縮 大変 せっかく ごめん 遺憾 失礼",
    "then": "しかし ただし ですが 一方 なお したがって そのため よって また だが けれども",
    "worked_out": "計算 算出 わかります 分かります 求め 足す 足し 引く 引き 読み取れます",
    "offer": "ん 供 頂 願 提 認 訳 ぬ 限 般",
    "though": "んが すが たが だが いが るが ものの 一方 おり あり のみで けれども けれど",
    "fine": "です ます でした ました である だった だ なる した",
    "any": "*",
    "comma": ",",
    "number": " ".join(map(str, range(1, 100))) + " 18* 19* 20*",
    "inside": "まで まれ まち する すべ すで ずれ",
    # The particle that ends a topic, polite endings, and Chinese.
    "stops": """, は ま す 是 为 為 于 這 这 没 沒 们 們 从 從 对 對 关 说 說 该 个 与 发 后 你 他 她 它 把 被 将
        则 规 问 题 时 间 还 进 过 吗 并 无 办 业 东 车 长 门 见 议 记 论 设 证 评 语 请 调 谁 转 那 书 仅 传 几
        很 给 两""",
}

PARTS = {
    # A sentence names its topic, then the source, then what is not done. A topic ends at its particle.
    "topic": "{any} {rest}",
    "rest": "(-{stops} | {inside})*",
    "page": "{this}* ({given} {topic})? ({work} の)? {text} ({text} | {in})*",
    "source": "({topic} の)? {page} {where} {at}* ,?",
    "within": "{page} {at} {at}* ,?",
    # "According to the text," and "the text tells this, but".
    "lead": "({topic} の)? {page} (によ | に基 | から | を | に従 | で | に照) (-{comma})* ,"
    " | {page} (に | で | に あ る の)? は ,? ... ({though} ,? | です . | ます . {then} ,?)"
    " | {topic} (につ い ては? .. | に? は) {adverb}* ({tell} | 出) ({tell} | {kana})* {though} ,",
    # The verb, its endings and the negation: of telling or knowing, of telling, of what stands told, of being there.
    "not": "(ません | おらず | なく | ない {ending} | なかった {ending} | かね)",
    "tells_not": "({tell} | {judge}) ({tell} | {judge} | {kana})* {not}",
    "telling_not": "{tell} ({tell} | {kana})* て {kana}* {not} | 出 て {kana}* {not}",
    "told_not": "{tell} ({tell} | {kana})* (れ て | っ て | か て) {kana}* {not}",
    "absent": "(あり | ござい | 提 供 {kana}* | {judge} ({judge} | {kana})*)? {not}",
    "label": "(最終 | 私の)* (回答 | 答え | 答 | 解答 | 結論 | 結果 | 判定)",
    "opener": "({hedge} ... (, | .) | {then} ,? | {lead} | 本件 に 関 する 限り ,"
    " | ({topic} を)? (この | その | ご | お) {question} ... が ,)*",
}

JAPANESE = Language(
    name="Japanese",
    words=WORDS,
    parts=PARTS,
    start="{opener}",
    labels=("({then} ,?)* {label} (: | . | は)",),
    answers=(
        "... (ません でした | ません | ない | なかった) です? (が | {though}) ,? (-{offer})* ({fine} | {number}) .",
        "... {not} ... . {then} ,? (-{offer})* {worked_out} (-{offer})* .",
    ),
    declines=(
        # The source does not tell, of whatever topic.
        "{source} {adverb}* ({tells_not} | 不明)",
        "({topic} の)? {page} (は | が | も) ,? {adverb}* {telling_not}",
        "(({topic} の)? {page} {at} {at}* ,? | {lead}) {rest} {particle} {particle}* ,? {adverb}* {telling_not}",
        "{source} {rest} {particle} {particle}* ,? {adverb}* {tells_not}",
        "{lead} {rest} {particle} {particle}* ,? {adverb}* ({know} {kana}* でき | 登 場 し) {not}",
        "{topic} {particle} {particle}* ,? {within} {adverb}* {tells_not}",
        # What was asked for is not told.
        "{topic} (は | が | につ い ては | まで は) ,? {adverb}* {told_not}",
        "{topic} は ,? ({know} {kana}* でき | わかり | 分かり) ません (. | ,)",
        "{topic} か (どうか)? (は | を | も | まで)* ,? {within}? {adverb}* ({tells_not} | 不明)",
        "{adverb}* {told_not}",
        # There is no such information.
        "({source} {rest} | {topic} {particle}*)? {info} {particle}* しか? {within}? {adverb}* {absent}",
        "({source} {rest} {told} {particle}* しか? | {topic}? {told} {particle}* {within}) {adverb}* {absent}",
        "({topic} {particle}*)? {info} {particle}* (不足 (し て | の | .) | 欠 | (なし | 無し) (. | ,) | 足り {not})",
        "{topic}? ({info} | {told} | 案内) (を | は) 見つけ {kana}* {not}",
        "{topic} {particle}* ,? {within} (ない {ending} | ありま せん)",
        # The reader does not know.
        "((私 に は)? {unknown} {doing}* | 見つか り) {not} ます? で? し? た? .",
        "(この | その | ご) 質問 には? (お? 答え | 回答) {kana}* {not}",
        "({topic} は)? 不明 (です)? .",
        "{page} は {question} と (関係 | 関連) (が | の)? (あり | な)",
        "{topic} は {page} 外 で す",
        "(回答 | 判断 | 特定) (不能 | 不可)",
    ),
)
