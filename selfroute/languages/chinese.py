"""The rules that recognise a decline in Chinese.

Tested only on examples that we wrote ourselves, not on real replies.
"""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # Names of the source: the prompt's passages and works, in simplified and traditional characters.
    "text": """文本 文字 文中 文内 文內 文段 段落 段 片段 片断 片斷 原文 正文 全文 上文 下文 本文 此文 该文 該文 块
        塊 分块 分塊 数据块 數據塊 区块 區塊 上下文 语境 語境 背景 摘录 摘錄 节选 節選 引文 引用 内容 內容 信息 資訊
        资讯 訊息 材料 资料 資料 素材 来源 來源 文档 文檔 文件 档案 檔案 书中 書中 书里 書裡 书内 这本书 這本書 论文
        論文 文章 文献 文獻 报告 報告 报道 報道 報導 新闻稿 新聞稿 新闻 新聞 公告 通知 通告 声明 聲明 年报 年報 季报
        季報 财报 財報 报表 報表 招股书 招股書 招股说明书 招股說明書 附注 附註 表格 图表 圖表 表 条文 條文 指南 手册
        手冊 说明书 說明書 章节 章節 一章 本章 这章 這章 一节 一節 本节 本節 部分 一段 几章 幾章 第一段 第二段
        第三段 页面 頁面 页 頁 网页 網頁 小说 小說 故事 传记 傳記 剧本 劇本 诗 詩 访谈 訪談 采访 採訪 对话 對話 记录
        記錄 纪录 紀錄 纪要 紀要 菜谱 食谱 食譜 摘要 简介 簡介 案例 搜索结果 搜索結果 搜尋結果 结果 結果 数据集
        數據集 题目 題目 日志 日誌 信件 演讲 演講 这里 這裡 此处 此處 说明文件 說明文件 管理层讨论 管理層討論
        讨论与分析 討論與分析""",
    # Contracts and laws: what these do not contain is an answer, unless the sentence says that it is not "in" them.
    "deed": """合同 契约 契約 协议 協議 条款 條款 条例 條例 法律 法条 法條 法规 法規 章程 规程 規程 规则 規則 保修
        许可 許可 保单 保單 公约 公約 政策 计划 計劃""",
    # Unmistakable names of what was retrieved; and what makes other words of "say": to persuade, to lie.
    "plain": "文本 文中 段落 片段 文档 文檔 材料 资料 資料 上下文 原文 摘录 摘錄 节选 節選 正文",
    "spoken": "服 谎 謊 笑 话 話 . ,",
    "paper": "这份 這份 这篇 這篇 这本 這本 该份 該份 该篇 該篇",
    "author": "作者 编者 編者 笔者 筆者 作者们 作者們 叙述者 敘述者",
    "given": """附 列 上面 前面 前述 下列 下面 以下 提供 所 给 給 给定 給定 给出 給出 上述 以上 现有 現有 已有 已知
        目前 当前 當前 可用 相关 相關 有关 有關 参考 參考 检索 檢索 检索到 檢索到 获取 獲取 取回 得到 这 這 些 该 該
        本 此 其 您 你 我 们 們 手头 手上 手中 几 幾 段 两 兩 二 三 四 五 的 个 個 份 篇 块 塊 章 条 條 则 則 各 每
        整 全部 所有 任何 完整 财务 財務 年度 季度 书籍 書籍 会议 會議 出 到 用户 公司 仅 僅 已 经 經 中""",
    "any": "*",
    "number": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 18* 19* 20* k q a b",
    "in": """中 里 裡 內 内 裏 上 的 里面 裡面 之中 之内 当中 當中 各 这 這 几 幾 本身 , 0 1 2 3 4 5 6 7 8 9 10 至
        到 和 与 與 及 所 提供""",
    # What is looked for in the source.
    "info": """信息 資訊 资讯 訊息 内容 內容 数据 數據 资料 資料 说明 說明 描述 描写 描寫 记载 记載 記載 记录 記錄
        介绍 介紹 提及 交代 规定 規定 答案 证据 證據 线索 線索 迹象 跡象 细节 細節 详情 詳情 依据 依據 根据 根據
        一项 一項 数值 數值 数字 數字 表述 陈述 陳述 名字 名称 名稱 论述 論述 讨论 討論 解释 解釋 分析 比较 比較
        对比 對比 引述 原话 原話 引用 引文 预测 預測 预期 預期 指引 定义 定義 文字 结论 結論 上下文 部分 语句 語句
        段落 片段 章节 事实 事實 指标 指標""",
    "found": """信息 資訊 资讯 訊息 资料 資料 内容 內容 数据 數據 上下文 描述 记载 记載 記載 提及 答案 说明 說明
        记录 記錄 线索 線索 细节 細節 依据 依據 讨论 討論 段落 原话 原話 引用 预测 預測 对比 對比""",
    "data": "信息 資訊 资讯 内容 內容 资料 資料",
    "which": """任何 足够 足夠 相关 相關 充分 充足 的 有关 有關 具体 具體 明确 明確 直接 确切 確切 详细 詳細 更多 更
        其他 其它 可用 这 這 该 該 此 那 些 一 方面 种 種 类 類 额外 額外 进一步 准确 准確""",
    "enough": "足够 足夠 相关 相關 任何 充分 充足 有关 有關 更多 具体 具體 明确 明確 直接",
    "on": "关于 關於 有关 有關 相关 相關 对应 對應 與 与 针对 針對 涉及",
    # Words of a phrase that names the source before the sentence: "according to the text".
    "by": """仅从 僅從 仅凭 僅憑 根据 根據 依据 依據 依照 按照 按 基于 基於 从 從 由 單憑 单凭 凭 憑 通过 通過 透過
        综合 綜合 在 据 據 就 通读 通讀 查阅 查閱 经过查阅 經過查閱 经 經 经过 經過 阅读 閱讀 查看 仔细 仔細 审阅
        審閱 检查 檢查 鉴于 鑒於 参照 參照 结合 結合 以""",
    "seen": """来看 來看 而言 看 来说 來說 之后 之後 后 後 我 我们 我們 仅 僅 可知 本身 判断 判斷 仔细 仔細 详细
        審閱 审阅 查看 阅读 閱讀 分析 检查 檢查 搜索 , 的 内容 內容 信息""",
    # Negations, adverbs, and the verbs that are negated.
    "not": "没能 沒能 没有 沒有 没 沒 未 未曾 未能 不 无 無 不曾 从未 從未 尚未",
    "none": """查无 查無 没有 沒有 无 無 缺乏 缺少 未见 未見 暂无 暫無 找不到 查不到 看不到 不存在 没 沒 未找到
        未发现 未發現 没有发现 沒有發現 没有看到 沒有看到 没有找到 沒有找到 不含 不具""",
    "say": """说清 說清 说明 說明 说到 說到 说过 說過 说他 說他 说她 說她 说是 說是 说有 說有 说谁 說誰 说哪 說哪
        说何 說何 说什 說什 说为 說為 说出 說出 明说 明說 提到 提及 提供 提过 提過 指出 指明 指定 给 給 涉及 描 披露
        揭露 揭示 公开 公開 透露 交代 交待 记 記 载 載 写 寫 讲 講 谈 談 列 体现 體現 显示 顯示 呈现 呈現 展示 介绍
        介紹 约定 約定 注明 註明 标明 標明 标出 標出 点明 點明 叙 敘 述 阐 闡 解释 解釋 解答 论及 論及 论述 論述
        触及 觸及 讨论 討論 探讨 探討 探究 探索 反映 回答 回應 回应 表明 表示 明示 报告 報告 报道 報道 作出 做出
        确定 確定 确认 確認 言明 详 詳 概述 量化 细分 細分 拆分 区分 區分 比较 比較 对比 對比 分析 评估 評估 引用
        引述 强调 強調 暗示 暗指 定义 定義 识别 識別 支持 针对 針對 关注 關注 聚焦 处理 展开 展開 告诉 告訴 告知
        具备""",
    "contain": "包含 包括 含有 涵盖 涵蓋 规定 規定 作规定 作規定",
    "said": """提及 提到 说明 說明 交代 记载 記載 披露 揭示 涉及 给出 給出 提供 写明 寫明 注明 註明 标明 標明 列出
        列明 指出 指明 讨论 討論 描述 显示 顯示 明示 规定 規定 探讨 探討 解释 解釋 体现 體現 述及""",
    "mention": "提到 提及 提过 提過 谈到 談到 讨论 討論 述及 论及 論及",
    "seek": "找到 看到 查到 见到 見到 检索到 檢索到 找出 定位到",
    "find": "找到 发现 發現 看到 查到 见到 見到 检索到 檢索到 找出 搜索到 搜尋到 读到 讀到",
    "cannot": """无法 無法 不能 不能够 难以 難以 很难 很難 没办法 沒辦法 无从 無從 不便 不足以 没法 沒法 不可能 无力
        未能 沒能 没能 没有办法 沒有辦法""",
    "know": """回答 作答 解答 答 确定 確定 判断 判斷 判定 断定 斷定 得知 得出 得到 获知 獲知 获取 獲取 知 推断 推斷
        推测 推測 推知 推导 推導 找 确认 確認 核实 核實 验证 驗證 证实 證實 说 說 查 计算 計算 猜 辨 了解 给出 給出
        看出 明确 明確 评 評 提供答 提供准 提供具 提供有 提供相 提供关 提供该 提供任 提供更 提供详 据此 據此 從中
        从中 做出 作出 识别 識別 比较 比較 分析 提取 定位 解释 解釋 总结 總結""",
    "unknown": "未知 不知道 不清楚 不得而知 不详 不詳 不了解 不确定 不確定",
    "adverb": """予 并 並 也 均 都 却 卻 亦 尚 还 還 暂 暫 暂时 暫時 目前 对此 對此 就此 似乎 好像 看来 看起来 显然
        实际上 其实 具体 具體 明确 明確 明确地 地 直接 详细 詳細 清楚 清晰 特别 特別 特意 专门 專門 任何 自始至终
        自始至終 一个字 一個字 只字 全 完全 根本 根本就 确实 確實 其中 有 作 做 过 過 則 则 明文 进一步 進一步 深入
        哪里 哪裡 单独 單獨 本身 再 地方 一处 一篇 一段 实质 充分 足够 正面 公开 针对性 逐项 逐一 个别 确切 確切
        准确 準確 肯定 被 直接地 具体地 能 够 進行 进行 加以 给予""",
    # How a sentence continues or ends.
    "it": "它 它们 其 该 它們",
    "after": ", . 来 來 可 能 以 支持 用 供 回答 关于 關於 有关 有關 提及 提到 解答 确定 帮助 使 让 与 對 对 的 : 说",
    "de": "的 之 书 書 ,",
    "ask": "是 谁 誰 哪 什么 什麼 何 怎 为 為 多少 几 幾 如何 该 該 这 這 此 答案 具体 具體 其",
    "other": ", 用 使 采 採 做 改 进 進 参 參 影 收 保 存 传 傳 泄 洩 修 训 訓 测 測 经 經 删 刪",
    "person": "他 她 我 们 們 者 人",
    "verdict": "答案 答 回答 回复 回覆 结论 結論 结果 結果 判定 解答 最终答案 最終答案",
    # Fillers, and words of sentences that answer after all.
    "hedge": """似乎 好像 看来 看來 看起来 看起來 遗憾的是 遺憾的是 可惜的是 不幸的是 抱歉 很抱歉 非常抱歉 十分抱歉
        对不起 對不起 不好意思 请原谅 請原諒 遗憾 遺憾 很遗憾 很遺憾 恕 呢 可惜 抱歉地 实际上 其实 事实上 总的来说""",
    "so": """因此 所以 故 因而 于是 於是 综上 綜上 综上所述 綜上所述 但 但是 不过 不過 然而 可 可是 却 卻 而 并 並
        且 而且 都 也 总之 總之 是以 我""",
    "question": "您 你 问题 問題 题目 題目 要回答 想回答 若要回答 用户 要计算 要計算 要确定 要確定 若要计算",
    "regarding": """对此 對此 是否 关于 關於 至于 至於 对于 對於 有关 有關 针对 針對 就 虽然 雖然 尽管 盡管 儘管
        究竟 到底 没有更多 沒有更多 谁 誰 哪 什么 什麼 何 怎 为什么 為什麼 由于 由於 因为 因為""",
    "though": "虽然 雖然 虽 雖 尽管 盡管 儘管",
    "but": "但 但是 不过 不過 然而 可 而",
    "worked_out": "看出 得出 算出 计算 計算 推算 相加 可得 可知 推知 合计 合計",
    "offer": "述 列 没 沒 未 无 無 不 请 請 提 介 描 讨 討 涉 讲 講 否 集 侧 側 聚 关 關",
    "outright": "明确 明確 具体 具體 详细 詳細 直接 专门 專門",
    "asking": """是否 有没有 有沒有 会不会 會不會 谁 誰 何时 何時 什么时候 什麼時候 哪 多少 几 幾 为什么 為什麼 为何
        為何 如何 怎 无法 無法 不能 不清楚 不确定 不確定 足够 足夠 不足 判断 判斷 确定 確定""",
    "pause": ",",
    "must": "被 须 須 应 應 需 必 不予 将 將 可",
    "people": "者 人 员 員 户 戶 司 费用 費用 品 项 項 目 题 題 件 申请 申請 投诉 投訴",
    "inside": """是否 是谁 是誰 是什么 是什麼 是多少 是哪 是何 为什么 為什麼 为何 為何 为多少 為多少 有没有 有沒有
        有关 有關 有无 有無 有多 有何 有哪 关于 關於 由于 由於 对于 對於 用于 用於 位于 位於 了解 行为 行為 有限
        有效 将如何""",
    # Verbs, before which a topic ends, and Japanese endings.
    "stops": """, 是 为 為 有 了 于 於 将 將 被 把 显 顯 没 沒 未 不 は を が に て と る し い す た の で も な ん
        れ り ま き く か こ つ ー""",
}

PARTS = {
    # A topic is anything without a finite verb, except within an indirect question: "whether it is".
    "topic": "({any} | {inside}) (-{stops} | {inside})*",
    "det": "({given} ({given} | {number})* | 第 ({given} | {number})*)",
    "page": "({det} ({topic} 的)?)? {text} ({text} | {in})* | {det}? {deed} {in} ({text} | {in})*"
    " | {paper} {topic} {in}*",
    "source": "({topic} 的)? {page}",
    "about": "((对 | 對 | 关于 | 關於 | 就 | 对于 | 對於 | 针对 | 針對 | 按) (-{pause})*)",
    # The negated verb, with what may surround the negation; or: there is no information.
    "never": "{adverb}* {about}? {not} ({adverb} | {about} | 在 .. {page})*",
    "says_not": "{never} 人? ({say} | {contain} | (提 | 说 | 說 | 写 | 寫) (. | ,) | (说 | 說) -{spoken})",
    "none_of": "{adverb}* {none} ({which}* {info} | {which}* {about} (-{pause})* {info} | (-{other})* {info})",
    "not_tell": "{says_not} | {none_of} | 只字 {not} 提 | (一个字 | 一個字) (也 | 都) {not} | 保持沉默"
    " | 语焉不详 | 語焉不詳"
    " | (与 | 與 | 和) .. (无关 | 無關 | 不相关 | 不相關 | {not} 直接? (关系 | 關係 | 关联 | 關聯)) | 不足以",
    "can_not": "(看 | 得 | 推 | 判断 | 判斷) 不出 | {cannot} {adverb}*"
    " (({by} | 对 | 對) ..)? {adverb}* ({know} | 提供 (. | ,))",
    "no_find": "{adverb}* {not} ({adverb} | 在 .. {page})* {find} .. ({found} | {on})",
    "looked": "(翻 | 查 | 看 | 检 | 檢 | 核 | 阅 | 閱 | 读 | 讀 | 仔 细 | 仔 細 | 逐 | 反 复 | 审 | 審) ... ,",
    "lead": "{by} .. {page} {seen}* ,?",
    "opener": "((没有 | 沒有 | 不 | 否 | 没 | 沒 | 不是 | 并没有) (, | .) | {hedge} ,? | {lead} | {regarding} ... ,"
    " | {topic} 方面 , | {question} ... , | {so} ,?)*",
}

CHINESE = Language(
    name="Chinese",
    words=WORDS,
    parts=PARTS,
    start="{opener}",
    labels=("({so} ,?)* ({topic} 的)? {verdict} (: | . | 是 | 为 | 為 | 应 | 應 | 如下)*",),
    answers=(
        "... , {but} (-{offer})* (. | :)",
        "... . {but} (-{offer})* {worked_out} (-{offer})* (. | :)",
        "{but} (-{offer})* {worked_out} (-{offer})* (. | :)",
        # The subject is people in the text, not the text: "those who cannot pay must ...".
        "({cannot} | {not} | {none}) (-{pause})* 的 (-{pause})* {people} (都 | 均 | 也)? {must} ... .",
    ),
    no="没有 | 沒有 | 不 | 否 | 没 | 沒 | 不是 | 并没有 | 並沒有 | 并非 | 没有提到 | 沒有提到",
    asks=("{asking}",),
    declines=(
        # The source does not say, whatever the topic.
        "(对此 ,?)? ({source} | {given}* {author} (在 .. {page})?) ,? {not_tell}",
        "(我 {looked})? {adverb}* {not} 任何? {page} {adverb}* ({mention} | {contain} | 讲 | 講 | 写 | 寫)",
        "({text} (中 | 里 | 裡 | 内 | 內) | 文中 | 文内 | 书中) (并 | 並)? (没有 | 沒有 | 无) (-{pause})* .",
        "{det}? {deed} ,? {never} {say}",
        (
            "{source} -{pause} -{pause} -{pause} ... (, | .) ({so} | {regarding} (-{pause})* ,)* ({source} | {it}"
            " | {topic})? ,? ({not_tell} | {can_not} | {not} {adverb}* {said} (. | ,) | 不 在 其 中)"
        ),
        "{topic} (, {author} | (, 在? | -{person} 在) {page}) ,? {not_tell}",
        (
            "{topic} ({not} {adverb}* (在 {page} {adverb}* ({say} | 出现 | 出現) | (出现 | 出現) 在 .. {page}) | 不 在"
            " {given}* {plain})"
        ),
        "{topic} : {page}? {not} {adverb}* {said} (. | ,)",
        "{topic} {cannot} {adverb}* ({by} | 用) .. {page} .. {know}",
        "({given}* {info} | {paper} {topic}) 不 (在 | 属于) {page}",
        "{lead} {topic} {not} {adverb}* {outright} 地? {say}",
        "{topic} {not} {outright} 地? {said}",
        # Nothing is said.
        "{adverb}* {not} {adverb}* ({mention} (-{de} | .) | (提到 | 提及) , | {said} .)",
        "{adverb}* {not} {adverb}* {say} (-{pause})* {found} .",
        "({lead} | {though} ... , | 我? {looked}) {so}* ({says_not} (-{de} | .) | {none_of})",
        "({adverb} | 我)* {none} ({data} | {enough} {which}* {found} | ({on} | 任何) (-{other})* {found}) {after}",
        "({adverb} | 我)* {none} {which}* {data} (表明 | 显示 | 顯示 | 说明 | 說明 | 指出)",
        "(我 ({looked} {so}*)?)? (在 .. {page})? {no_find}",
        (
            "(我? {looked} {so}* | 在 .. {page} | {source}) {adverb}* (({not} | {cannot}) {adverb}* {seek} | (找 | 查"
            " | 看) 不到)"
        ),
        "{not} 在 .. {page} {seek}",
        "{topic}? {info} (不足 | 有限 | 不够 | 不夠 | 缺失) (, | . | 以)",
        "{topic} {not} {adverb}* {said} (. | ,)",
        # The model does not know.
        "({adverb} | 我)* {can_not} (-{de} | .)",
        "(我 们?)? 需要 更多 {which}* {found} (, | . | 才 | 来)",
        "({adverb} | 我)* {unknown} (, | . | {ask})",
        "{page} .. 前 (就 | 便)? (已 | 经)? (结束 | 結束 | 中断 | 終止)",
        "需要 (完整 | 全文 | 更多) .. (才 | 来 | 方)",
        "{given} {given}* ({info} | 问题 | 問題) .. ({can_not} | 超出)",
    ),
)
