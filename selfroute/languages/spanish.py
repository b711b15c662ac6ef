"""How models decline in Spanish."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # What the answer is read from: as the prompt gave it, and as a work that says some things and not others.
    "passages": """texto textos pasaje pasajes fragmento fragmentos contexto contextos documento documentos documentación
        extracto extractos párrafo párrafos página páginas sección secciones apartado apartados información
        informaciones contenido contenidos material materiales parte partes segmento segmentos trozo trozos bloque
        bloques chunk chunks snippet snippets archivo archivos fichero ficheros porción porciones recorte recortes
        cita citas cuerpo estado_financiero estados_financieros""",
    "work": """informe informes artículo artículos autor autores autora autoras manual guía acta capítulo capítulos
        novela libro cuento relato estudio tabla ley reglamento contrato catálogo prospecto biografía narrador
        fuente fuentes entrevista reportaje folleto ordenanza memoria notas paper papers trabajo trabajos ensayo
        investigadores declaración declaraciones cuentas formulario transcripción resumen anexo nota historia
        narración escena carta cartas publicación editores redactores registro registros prospecto presentación
        obra crónica expediente contrato acuerdo diálogo conversación ley normativa póliza boletín entrada
        apéndice cuadro""",
    "asked": "datos pregunta preguntas respuesta cuestión información dato datos detalle detalles",
    "information": """información informaciones dato detalle detalles referencia referencias mención menciones alusión alusiones
        respuesta respuestas indicación indicaciones explicación explicaciones aclaración nada precisión
        precisiones especificación discusión especificaciones debate""",
    "findings": """datos constancia pista pistas rastro elementos evidencia evidencias cita citas cifra cifras descripción
        descripciones proyección proyecciones previsión previsiones pronóstico pronósticos comparación
        comparaciones análisis declaración declaraciones desglose estimación estimaciones estadísticas valor
        valores prueba pruebas indicio indicios palabra término método conclusiones base fundamento afirmación
        comentario comentarios conocimiento""",
    "given": """proporcionad* facilitad* disponible* dad* suministrad* aportad* presentad* reproducid* recuperad*
        anterior* siguiente* citad* adjunt* mostrad* solicitad* pedid* buscad* estos esta este estas aquí
        únicamente solo dos tres cuatro cinco todos todas que_tengo que_se_me_han que_me_has_dado 1 2 3 4 5 6 7 8
        9 proveíd* provist* entregad* compartid* recibid* consultad* revisad* analizad* ofrecid* relevante*
        específic* concret* financier* anual* trimestral* complet* enter* extraíd* seleccionad* previo previa
        incluid* mencionad* 0 10 11 12""",
    "the": """el la lo los las un una unos unas del al de en este esta estos estas ese esa esos esas dicho dicha mi tu
        su sus vuestra nuestra entre cualquier cualquiera ambos ambas otro otra otros otras""",
    "article": "el la lo los las un una este esta estos estas ese esa eso esto ello su sus tu",
    "prep": """según en con de del a al dentro por para basándome basándonos base acuerdo partir tras después revisar
        leer analizar examinar teniendo cuenta ateniéndome conforme vista luz dado sobre sin más entre basado
        basada basándose basados base luego cuidadosamente detenidamente minuciosamente atentamente
        exhaustivamente he haber revisado leído analizado examinado revisando analizando leyendo lectura revisión
        análisis únicamente exclusivamente solo solamente desde mediante usando utilizando ante considerando
        dentro buscar una""",
    "of": "de del sobre",
    "about": "sobre en_cuanto acerca respecto con_respecto en_lo_que_respecta del de para",
    "who": """qué quién quiénes cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas por_qué si en_qué
        a_qué con_qué de_qué""",
    "comma": ",",
    "available": "disponible disponibles accesible* incluid*",
    "able": "puedo podemos podría podríamos pude logro consigo sabría sabríamos",
    "permits": "permite* basta* alcanza* ayuda*",
    "enough": "suficiente suficientes",
    "has": "ha han",
    "seems": "parece parecen llega llegan puede pueden",
    "needs": "haría harían sería necesito necesitaría",
    # Verbs.
    "not": "no tampoco nunca ni",
    "negated": "no nunca ni tampoco sin ningun ninguna nada",
    "any": "ningún ninguna ninguno ninguna nada cualquier",
    "clitic": "se lo la los las le les me nos",
    "can": """puedo puede pueden podemos podría podríamos podrían pude pudo sabría sabríamos es_posible
        resulta_posible sería_posible llego logro consigo""",
    "adverb": """lamentablemente embargo explícitamente expresamente directamente claramente específicamente exactamente
        suficiente suficientes también aquí ahí allí con_certeza con_exactitud con_seguridad absolutamente
        por_tanto en_cambio en_ningún_momento en_absoluto realmente concretamente explícita directa específica
        expresa precisa concreta clara detallada suficientemente necesariamente detalladamente explícitamente
        particularmente de_forma_explícita de_manera_explícita de_forma_directa de_manera_directa
        de_forma_específica de_manera_específica en_concreto en_particular en_detalle adicional adicionales
        explícito directo específico específicos concreto concretos explícitos explícitas específicas concretas
        detallado detallados detalladas relevante relevantes exacta exacto exactas exactos precisas precisos
        propio propia definitivamente actualmente siquiera todavía aún simplemente fácilmente adecuadamente
        inmediatamente""",
    "names": """aborda abordan menciona mencionan indica indican especifica especifican detalla detallan dice dicen aclara
        aclaran explica explican revela revelan nombra nombran identifica identifican informa informan señala
        señalan alude aluden explicita explicitan concreta concretan consigna consignan discute discuten desglosa
        desglosan divulga divulgan profundiza profundizan menciono cuantifica cuantifican""",
    "tells": """abord* mencion* indic* especific* detall* dice* decir dij* aclar* explic* revel* nombr* identific* inform*
        señal* alud* explicit* concret* consign* discut* desglos* divulg* profundiz* cuantific* analiz* examin*
        explor* compar* coment* resum* list* enumer* expon* defin* document* report* respald* confirm* suger*
        sugier* afirm* declar* plante* delin* elabor* justific* demuestr* relat* narr* proyect* public* calcul*
        determin* relacion* investig* evalú* evalu* esboz* asoci* atribuy*""",
    "records": "recoge* cuenta cuentan precisa*",
    "holds": """contiene* proporciona* ofrece* incluye* da dan aporta* facilita* permite* habla* describe* hace hacen
        contempla* responde* contesta* trata tratan trae traen brinda* abarca* refleja* muestra* suministra*
        basta* alcanza* sirve* ayuda* guarda* cita* refiere* establece* presenta* registra* incluy* conten*
        conteng* proporcion* ofrec* mostr* aport* descri* trat* habl* enfoca* centra* posee permit* tien* provee*
        proveen entra entran va van llega llegan""",
    "stands": "figura* consta*",
    "appears": "aparece* viene vienen encuentra* está están es son",
    "describes": """describe* habla* centra* explica* menciona* narra* trata* relata* cuenta cuentan corresponde*
        refiere* aborda* presenta* contiene* expone* cita* detalla* ofrece* alude* informa*""",
    "told": """mencionad* especificad* indicad* explicad* detallad* aclarad* precisad* proporcionad* facilitad*
        explicitad* indicad* divulgad* desglosad* discutid* abordad* revelad* señalad* nombrad* identificad*
        declarad* cuantificad* proporcionad* expuest* descrit* tratad* dich* definid* establecid* documentad*""",
    "inf": """decirle decirte decirles determinarlo saberlo decirlo contestarla responderla responder contestar
        determinar determinarse saber saberse decir decirse precisar establecer deducir deducirse inferir
        inferirse indicar afirmar confirmar extraer conocer proporcionar facilitar ofrecer dar responderse
        contestarse sacar averiguar concluir ayudarte ayudarle verificar verificarlo confirmarlo responderle
        contestarle determinarla determinarlos calcular calcularlo calcularse identificar evaluar comparar
        comparado localizar encontrar hallar especificar detallar describir explicar aclarar precisarlo
        establecerlo obtener obtenerse encontrarse localizarse identificarse verificarse confirmarse establecerse
        precisarse ayudar sacarse adivinar predecir proveer indicarle darle ofrecerle proporcionarle
        proporcionarte""",
    "known": """determinarse deducirse inferirse saberse responderse contestarse decirse ser_respondid* ser_contestad*
        ser_determinad* calcularse establecerse encontrarse confirmarse precisarse verificarse obtenerse""",
    "know": """sé sabemos encuentro encontré encontramos veo tengo tenemos dispongo disponemos logro consigo localizo
        he_encontrado hemos_encontrado he_podido he_hallado hallo cuento_con contamos_con puedo_encontrar
        pude_encontrar podemos_encontrar logré_encontrar logro_encontrar consigo_encontrar puedo_hallar
        pude_hallar he_logrado_encontrar he_podido_encontrar puedo_localizar pude_localizar puedo_ver puedo_dar
        puedo_ofrecer puedo_proporcionar puedo_ofrecerte puedo_proporcionarte parece_haber hemos_podido_encontrar
        aparece logré_hallar pude_identificar puedo_identificar logro_localizar""",
    "lacking": "insuficiente* falta* carece* desconocid* imposible",
    # Fillers.
    "hedge": """ahí aquí allí lo_siento lo_siento_mucho lo_lamento lamentablemente desgraciadamente desafortunadamente
        disculpe disculpa disculpas perdón perdone perdona me_temo siento lamento lamento_informar sin_embargo
        no_obstante pero por_tanto por_lo_tanto en_consecuencia así_pues así_que y que me_disculpo mis_disculpas
        infelizmente por_desgracia me_disculpo_pero mil_disculpas pido_disculpas le_pido_disculpas
        les_pido_disculpas mis_más_sinceras_disculpas perdona_pero hola bueno en_realidad de_hecho según_parece
        por_consiguiente""",
    # How a sentence goes on that is no decline: the topic of a decline comes before "no".
    "stops": """, no es fue son eran era fueron estaba nunca tampoco ha han había hay tiene tienen tenía hizo hace hacen
        dice dicen dijo debe deben puede pueden va van será serán se representa sustituyó señala indican indica
        propone cita sigue vuelve procede cerró bajó subió costó aconseja refleja cuenta consiste incluye incluyen
        contiene describe comenzó empezó nació murió vive vivía quiso llegó estudió describen pierden corre est
        sont a_été le les du des dans au aux ce qui était ont une n et podría podrían debería tuvo tuvieron dio
        dieron pagó registró registraron aumentó disminuyó mejora mejoran reduce usa usan utiliza utilizan muestra
        muestran revela argumentan argumenta sostienen ofrece ofrecen requiere implica permite está están posee
        depende afirma afirma sugiere explica espera esperan supera superan comprende abarca evita crea lleva
        llevan existe existen pasó quedó llamaba respondió""",
    "telling": """no ni ningún ninguna nada solo sólo únicamente menciona* indica* especifica* dice puedo texto
        contexto pasajes fragmentos si responde*""",
    "but": "pero sin_embargo no_obstante aunque",
    "worked": "calcul* sumando restando sumar restar dividiendo multiplicando obtenerse",
}

PARTS = {
    # Its names: "the text", a work, what was asked for; and where it stands.
    "head": "({passages} | {work} | {given} | {the} | ,)* ({of} ..)?",
    "the_text": "({the} | {given})* {passages} {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "any_info": "({lots} | {given})* ({information} | {findings})",
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
    "silent": "{not} {adverb}* {clitic}* ({seems} {adverb}* {clitic}*)? ({tells} | {has} {told}) | no (tiene | tienen) ({some} | relación | nada) | {no} ({names} | {records} | {holds} | {can_not})"
    " | ({lacking} | guarda silencio | guardan silencio) | (es | son | resulta) {adverb}* {lacking}"
    " | {not} (es | son | resulta) {adverb}* {enough} | nada (dice | dicen | indica)",
    "work_silent": "{no} (({seems} {adverb}* {clitic}*)? {tells} | {has} {told} | {names} | {records} | {holds} {any_info} | {can_not}) | (guarda |"
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
        "no se ({names} | {holds} | {has} {told} | {tells} | encuentra | encuentran) {any_info}",
        "(no se ({holds} | {tells} | {has} {told}) | no (se (encuentra | encuentran) | {hay})) (({any} | {lots}) ..)? {in_text}",
        "{lead} {opener} no (se encuentra | se encuentran | {hay}) ({any_info} | {any})",
        "nada {in_text} ({names} | {holds} | {tells})",
        "{any} {findings}? .. (se ({names} | {holds} | {tells}) | {appears}) {adverb}* {in_text}",
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
        "{article} .. no se {adverb}* ({tells} | {holds}) ({adverb} | {given})* {in_text}",
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
    answers=(
        "... , (pero | aunque | aun así | sino) (-{telling})* (. | :)",
        "(... {negated} ... .?)? {but} (-{negated})* {worked}",
    ),
)
