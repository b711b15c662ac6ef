"""Short replies that decline, such as the refusal translated, in the languages that models answer in.

They count only as a whole reply, or as its first sentence: "Sans réponse." declines, "Ohne Antwort blieb nur Frage 3."
does not. Words that belong together are joined by `_`.
"""

# ruff: noqa: RUF001 (Turkish has a dotless i)

from __future__ import annotations

from selfroute.languages.language import Language

_FORMS = {
    "English": """undetermined indeterminate indeterminable undeterminable unanswered idk empty_response no_answer
        no_answer_found no_answer_available no_answer_possible no_data no_data_available no_info not_answerable
        information_not_available information_unavailable information_not_found information_not_provided
        insufficient_data insufficient_data_to_answer answer_not_found answer_not_available answer_not_in_context
        question_unanswerable question_not_answerable cannot_answer not_enough_info not_in_text not_in_context
        none_stated none_mentioned none_specified none_given none_provided i_don't_know""",
    "German": """unbeantwortbar nicht_beantwortbar nicht_zu_beantworten nicht_lösbar keine_antwort
        keine_antwort_möglich antwort_nicht_möglich ohne_antwort unbeantwortet keine_angabe keine_angaben
        keine_information keine_informationen unbekannt k_a nicht_bestimmbar nicht_ermittelbar
        beantwortung_nicht_möglich""",
    "French": """sans_réponse non_répondable pas_de_réponse aucune_réponse impossible_à_répondre
        impossible_de_répondre irrépondable question_sans_réponse réponse_impossible non_renseigné non_spécifié
        non_précisé non_mentionné inconnu indéterminé aucune_information pas_d_information ne_peut_être_répondu
        réponse_introuvable information_non_disponible information_indisponible""",
    "Spanish": """sin_respuesta no_contestable incontestable no_respondible irrespondible no_se_puede_responder
        imposible_responder imposible_de_responder imposible_contestar no_tiene_respuesta no_hay_respuesta
        sin_información sin_datos desconocido no_especificado no_se_menciona no_mencionado
        información_no_disponible no_disponible indeterminado pregunta_sin_respuesta no_se_sabe""",
    "Chinese": """无法回答 無法回答 不可回答 不能回答 无法作答 無法作答 无法解答 無法解答 不可解答 无答案 無答案
        没有答案 沒有答案 无解 未知 不详 不詳 未提及 未说明 未說明 未提供 无法确定 無法確定 无法得知 無法得知
        无相关信息 无可奉告 答不出来 没有相关信息 沒有相關資訊 信息不足 資訊不足 无法回答该问题 无法回答此问题
        无法回答这个问题""",
    "Japanese": """回答不能 回答不可 解答不能 解答不可 応答不能 回答できません 回答できない 答えられません
        答えられない お答えできません 解答できません 不明 不明です 該当なし 情報なし 記載なし 記載がありません
        答えなし 回答なし 分かりません わかりません 情報不足 回答不可能 回答不可能です 判断できません 言及なし""",
    "Italian": """irrispondibile senza_risposta non_rispondibile impossibile_rispondere nessuna_risposta non_so
        non_è_possibile_rispondere non_si_può_rispondere informazione_non_disponibile non_specificato
        non_menzionato non_indicato non_disponibile domanda_senza_risposta sconosciuto""",
    "Portuguese": """sem_resposta irrespondível não_respondível não_é_possível_responder impossível_responder
        impossível_de_responder não_há_resposta não_sei sem_informação não_especificado não_mencionado
        não_informado informação_não_disponível não_disponível não_pode_ser_respondida pergunta_sem_resposta
        desconhecido""",
    "Dutch": """onbeantwoordbaar niet_te_beantwoorden niet_beantwoordbaar geen_antwoord geen_antwoord_mogelijk
        zonder_antwoord onbekend niet_vermeld niet_gespecificeerd geen_informatie geen_informatie_beschikbaar
        kan_niet_worden_beantwoord kan_niet_beantwoord_worden niet_beschikbaar""",
    "Polish": """bez_odpowiedzi brak_odpowiedzi nie_można_odpowiedzieć brak_informacji brak_danych nie_wiem
        nie_podano nieznane nie_da_się_odpowiedzieć""",
    "Turkish": """cevaplanamaz yanıtlanamaz cevapsız yanıtsız cevap_yok yanıt_yok bilinmiyor bilgi_yok
        belirtilmemiş cevap_verilemez""",
    "Vietnamese": """không_thể_trả_lời không_trả_lời_được không_có_câu_trả_lời không_có_thông_tin không_rõ
        không_được_đề_cập không_biết""",
    "Indonesian": "tidak_dapat_dijawab tidak_bisa_dijawab tidak_ada_jawaban tidak_diketahui tidak_ada_informasi",
    "Russian": """без_ответа невозможно_ответить нет_ответа ответа_нет не_могу_ответить неизвестно нет_информации
        ответить_невозможно не_указано не_упоминается нет_данных ответ_невозможен нельзя_ответить
        недостаточно_информации вопрос_без_ответа""",
    "Ukrainian": "без_відповіді неможливо_відповісти немає_відповіді невідомо немає_інформації не_вказано",
    "Korean": """답변_불가 답변불가 답변_불가능 답변할_수_없습니다 답변할_수_없음 대답할_수_없습니다 대답할_수_없음
        답할_수_없습니다 답할_수_없음 알_수_없음 알_수_없습니다 답_없음 답변_없음 정보_없음 정보가_없습니다
        언급되지_않음""",
    "Arabic": """لا_يمكن_الإجابة غير_قابل_للإجابة لا_توجد_إجابة بدون_إجابة بلا_إجابة غير_معروف غير_مذكور
        لا_تتوفر_معلومات لا_يمكن_الإجابة_على_السؤال لا_يمكن_الإجابة_عن_السؤال لا_أعرف""",
    "Hindi": """उत्तर_नहीं अनुत्तरित उत्तर_नहीं_दिया_जा_सकता उत्तर_देना_संभव_नहीं उत्तर_देना_संभव_नहीं_है
        कोई_उत्तर_नहीं उत्तर_उपलब्ध_नहीं जानकारी_उपलब्ध_नहीं जानकारी_नहीं अज्ञात पता_नहीं उत्तर_नहीं_है""",
}

_LABELS = (
    "answer antwort réponse respuesta risposta resposta antwoord odpowiedź cevap ответ 답변 답 الإجابة उत्तर 答案 回答"
)

REFUSALS = Language(
    name="Refusals",
    declines=(),
    whole=("{forms}",),
    labels=("{label} (: | .)",),
    words={"label": _LABELS, "forms": " ".join(_FORMS.values())},
)
