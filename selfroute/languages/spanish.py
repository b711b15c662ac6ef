"""How models decline in Spanish."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # What the answer is read from: as the prompt gave it, and as a work that says some things and not others.
    "passages": """texto textos pasaje pasajes fragmento fragmentos contexto contextos documento documentos extracto
        extractos párrafo párrafos páginas sección secciones información contenido material partes""",
    "work": """informe informes artículo artículos autor autores autora autoras manual guía acta capítulo capítulos
        novela libro cuento relato estudio tabla ley reglamento contrato catálogo prospecto biografía narrador
        fuente fuentes entrevista reportaje folleto ordenanza memoria notas""",
    "asked": "datos pregunta preguntas respuesta cuestión información dato datos detalle detalles",
    "information": """información informaciones dato detalle detalles referencia referencias mención menciones
        respuesta respuestas indicación indicaciones explicación explicaciones nada evidencia precisión""",
    "findings": "datos constancia pista pistas rastro elementos",
    "given": """proporcionad* facilitad* disponible* dad* suministrad* aportad* presentad* reproducid* recuperad*
        anterior* siguiente* citad* adjunt* mostrad* solicitad* pedid* buscad* estos esta este estas aquí únicamente
        solo dos tres cuatro cinco todos todas que_tengo que_se_me_han que_me_has_dado 1 2 3 4 5 6 7 8 9""",
    "the": """el la lo los las un una unos unas del al de en este esta estos estas ese esa esos esas dicho dicha mi
        tu su sus vuestra nuestra entre""",
    "article": "el la lo los las un una este esta estos estas ese esa eso esto ello su sus tu",
    "prep": """según en con de del a al dentro por para basándome basándonos base acuerdo partir tras después
        revisar leer analizar examinar teniendo cuenta ateniéndome conforme vista luz dado sobre sin más entre""",
    "about": "sobre en_cuanto acerca respecto con_respecto en_lo_que_respecta del de para",
    "who": """qué quién quiénes cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas por_qué si en_qué
        a_qué con_qué de_qué""",
    "comma": ",",
    "available": "disponible disponibles accesible* incluid*",
    "able": "puedo podemos podría podríamos pude logro consigo sabría sabríamos",
    "permits": "permite* basta* alcanza* ayuda*",
    "enough": "suficiente suficientes",
    "has": "ha han",
    "needs": "haría harían sería necesito necesitaría",
    # Verbs.
    "not": "no tampoco nunca ni",
    "any": "ningún ninguna ninguno ninguna nada cualquier",
    "clitic": "se lo la los las le les me nos",
    "can": """puedo puede pueden podemos podría podríamos podrían pude pudo sabría sabríamos es_posible
        resulta_posible sería_posible llego logro consigo""",
    "adverb": """lamentablemente embargo explícitamente expresamente directamente claramente específicamente
        exactamente suficiente suficientes también aquí ahí allí con_certeza con_exactitud con_seguridad
        absolutamente por_tanto en_cambio en_ningún_momento en_absoluto realmente concretamente""",
    "names": """aborda* menciona* indica* especifica* detalla* dice dicen aclara* explica* revela* nombra*
        identifica* informa* señala* alude* explicita* concreta* consigna*""",
    "records": "recoge* cuenta cuentan precisa*",
    "holds": """contiene* proporciona* ofrece* incluye* da dan aporta* facilita* permite* habla* describe* hace
        hacen contempla* responde* contesta* trata tratan trae traen brinda* abarca* refleja* muestra* suministra*
        basta* alcanza* sirve* ayuda* guarda* cita* refiere* establece*""",
    "stands": "figura* consta*",
    "appears": "aparece* viene vienen encuentra* está están es son",
    "describes": """describe* habla* centra* explica* menciona* narra* trata* relata* cuenta cuentan corresponde*
        refiere* aborda* presenta* contiene* expone* cita* detalla* ofrece* alude* informa*""",
    "told": """mencionad* especificad* indicad* encontrad* explicad* detallad* aclarad* precisad* proporcionad*
        facilitad* explicitad*""",
    "inf": """decirle decirte decirles determinarlo saberlo decirlo contestarla responderla responder contestar
        determinar determinarse saber saberse decir decirse precisar establecer deducir deducirse inferir inferirse
        indicar afirmar confirmar extraer conocer proporcionar facilitar ofrecer dar responderse contestarse sacar
        averiguar concluir ayudarte ayudarle""",
    "known": "determinarse deducirse inferirse saberse responderse contestarse decirse",
    "know": """sé sabemos encuentro encontré encontramos veo tengo tenemos dispongo disponemos logro consigo
        localizo he_encontrado hemos_encontrado he_podido he_hallado hallo cuento_con contamos_con""",
    "lacking": "insuficiente* falta* carece* desconocid* imposible",
    # Fillers.
    "hedge": """ahí aquí allí lo_siento lo_siento_mucho lo_lamento lamentablemente desgraciadamente
        desafortunadamente disculpe disculpa disculpas perdón perdone perdona me_temo siento lamento
        lamento_informar sin_embargo no_obstante pero por_tanto por_lo_tanto en_consecuencia así_pues así_que y que
        me_disculpo mis_disculpas infelizmente por_desgracia""",
    # How a sentence goes on that is no decline: the topic of a decline comes before "no".
    "stops": """, no es fue son eran era fueron estaba nunca tampoco ha han había hay tiene tienen tenía hizo hace
        hacen dice dicen dijo debe deben puede pueden va van será serán se representa sustituyó señala indican
        indica propone cita sigue vuelve procede cerró bajó subió costó aconseja refleja cuenta consiste incluye
        incluyen contiene describe comenzó empezó nació murió vive vivía quiso llegó estudió describen pierden corre
        est sont a_été le les du des dans au aux ce qui était ont une n et""",
    "telling": """no ni ningún ninguna nada solo sólo únicamente menciona* indica* especifica* dice puedo texto
        contexto pasajes fragmentos si responde*""",
}

PARTS = {
    # Its names: "the text", a work, what was asked for; and where it stands.
    "head": "({passages} | {work} | {given} | {the} | ,)*",
    "the_text": "({the} | {given})* {passages} {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "{prep} ({prep} | {the} | {given})* ({passages} | {work}) {head}",
    "lead": "{prep} ({prep} | {the} | {given})* ({passages} | {work} | {asked}) {head} ((que | y | de | del |"
    " cuyos) (-{comma})*)? ,?"
    " | {about} (-{comma})* , | si bien (-{comma})* ,",
    "opener": "({hedge} (, | que)?)*",
    "aside": ", (-{comma})* ,",
    "lots": "({any} | {adverb} | {the} | {enough} | más | otra)",
    "some": "{lots}* {information}",
    "no": "{not} {adverb}* {clitic}* {clitic}*",
    # What follows "no".
    "silent": "no (tiene | tienen) ({some} | relación | nada) | {no} ({names} | {records} | {holds} | {can_not})"
    " | ({lacking} | guarda silencio | guardan silencio) | (es | son | resulta) {adverb}* {lacking}"
    " | {not} (es | son | resulta) {adverb}* {enough} | nada (dice | dicen | indica)",
    "work_silent": "{no} ({names} | {records} | {holds} ({some} | {findings} (sobre | acerca)) | {can_not}) | (guarda |"
    " guardan) silencio",
    "can_not": "{can} {adverb}* (de | a | que)? {clitic}* {inf}",
    # What was asked for is not told.
    "told_not": "(no | nunca | tampoco) (se {adverb}* {names} | se {has} {told} | {stands} ({end} | {in_text} |"
    " {article})"
    " | {appears} {given}* {in_text} | (es | está | están | son | ha sido | han sido) {adverb}* {told})",
    "hay": "hay | existe | existen | había",
    "names_se": "se {clitic}* ({names} | {holds} | encuentra | encuentran | tiene)",
    "end": ". | , | :",
    "label": "(la | mi | nuestra)* (respuesta | pregunta | resultado | conclusión | solución) (final | corta |"
    " correcta)?",
}

SPANISH = Language(
    name="Spanish",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}* {opener}",
    labels=("{label} (: | .)", "{label} (es | sería | queda) {adverb}* :?"),
    explains=(
        ", | : | .",
        (
            "porque | ya que | pues | dado que | debido a | puesto que | {article} ({given} | {passages} | {work} |"
            " {asked})"
        ),
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work})",
        "no se | no hay | no consta | falta",
    ),
    declines=(
        # The text does not tell.
        "{the_text} {aside}? {silent}",
        "{the_work} {aside}? {work_silent}",
        (
            "en? (ninguno | ninguna | ningún) (de {the}*)? ({passages} | {work}) {head} {clitic}? ({names} | {holds} |"
            " {appears})"
        ),
        # It is not told: the subject stands behind.
        "{told_not}",
        (
            "no ({hay} | {names_se} | {appears} | {stands} | tiene) ({some} | {lots}* {findings} {given}* (al respecto"
            " | sobre | acerca | {in_text} | para {inf} | {enough} | {end}))"
        ),
        "(si bien | aunque) ({the_text} | {the_work}) (-{comma})* , {silent}",
        "para (responder | contestar) .. {needs}",
        "no ({clitic}* (es | resulta) posible | hay (forma | manera | modo) de | se {can} {adverb}*) {clitic}* {inf}",
        "no ((puede | pueden) (ser (respondida | contestada) | {known}) | (se | me) (desprende | deduce | infiere))",
        "no ((está | queda) claro | se sabe ,? {in_text})",
        "(falta | faltan) {some}",
        "{some} no ({told} | {available})",
        "(no {told} | sin (respuesta | información | datos) | desconocido | desconocida | ni idea) ({end} | {in_text})",
        "(me resulta | me es | es | resulta)? imposible {clitic}* {inf}",
        # The reader does not know.
        (
            "(yo | nosotros)? no {clitic}* ({know} ({some} | {lots}* {findings}) | {able} {adverb}* (de | a)?"
            " {clitic}* {inf} | {able} (encontrar | hallar | localizar) {some} | (estoy en condiciones | soy capaz) de"
            " {inf} | estoy seguro | {know} ({end} | {who}))"
        ),
        "no {clitic}* (encuentro | encontré | veo | tengo | dispongo | he encontrado) ... {in_text}",
        "(desconozco | desconocemos | ignoro | se desconoce ({end} | {who}))",
        "(nada | en (ningún lugar | ninguna parte) {in_text}?) se {names}",
        "no poder {clitic}* {inf}",
        # What was asked for is not told.
        "{article} .. {told_not}",
        (
            "{the_asked} ({head} | {asked})* (no (es | son | resulta) {adverb}* ({enough} | clara) | {no} {permits} |"
            " no (puede | pueden) (ser | {inf}) | no se ({names} | {holds} | encuentra | encuentran | {can} {inf}) |"
            " no (está | están) ({available} | {in_text}) | no tiene respuesta)"
        ),
        "{who} (-{comma})* ,? (({the_text} | {the_work}) {silent} | {told_not})",
        # The text tells of something else.
        (
            "({the_text} | {the_work}) se? {describes} ... (. | , | ,? pero) {opener} {lead}? ({the_text} | ellos |"
            " {article} ..)? ({silent} | no se {names} | {told_not} | no puedo)"
        ),
    ),
    answers=("... , (pero | aunque | aun así | sino) (-{telling})* (. | :)",),
)
