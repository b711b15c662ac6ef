"""The rules that recognise a decline in Spanish, tested only on examples that we wrote ourselves."""

from __future__ import annotations

from selfroute.languages.language import Language

WORDS = {
    # Names of the source: the passages ("context"), and works ("report"), whose silence may be an answer.
    "passages": """texto textos pasaje pasajes fragmento fragmentos contexto contextos documento documentos
        documentación extracto extractos párrafo párrafos página páginas sección secciones apartado apartados
        información informaciones contenido contenidos parte partes segmento segmentos trozo trozos bloque bloques
        chunk chunks snippet snippets archivo archivos fichero ficheros porción porciones recorte recortes cita
        citas cuerpo estado_financiero estados_financieros""",
    "work": """informe informes artículo artículos autor autores autora autoras manual guía acta capítulo capítulos
        noticia noticias novela libro cuento relato estudio tabla ley reglamento contrato catálogo prospecto biografía
        narrador fuente fuentes entrevista reportaje folleto ordenanza memoria notas paper papers trabajo trabajos
        ensayo investigadores declaración declaraciones cuentas formulario transcripción resumen anexo nota historia
        narración escena carta cartas publicación editores redactores registro registros presentación obra expediente
        acuerdo diálogo conversación normativa apéndice cuadro tablas cuadros figura figuras gráfico gráficos cláusula
        cláusulas disposiciones ficha leyes manuales guías novelas libros cuentos relatos estudios memorias material
        materiales""",
    "asked": "datos pregunta preguntas respuesta cuestión información dato detalle detalles",
    "information": """información informaciones dato detalle detalles referencia referencias mención menciones
        alusión alusiones respuesta respuestas indicación indicaciones explicación explicaciones aclaración nada
        precisión precisiones especificación discusión especificaciones debate""",
    "findings": """datos constancia elementos cita citas cifra cifras descripción descripciones proyección
        proyecciones previsión previsiones pronóstico pronósticos comparación comparaciones análisis declaración
        declaraciones desglose estimación estimaciones estadísticas valor valores palabra término método
        conclusiones afirmación comentario comentarios conocimiento""",
    "given": """proporcionad* facilitad* disponible* dad* suministrad* aportad* presentad* reproducid* recuperad*
        anterior* siguiente* citad* adjunt* mostrad* solicitad* pedid* buscad* estos esta este estas aquí únicamente
        solo dos tres cuatro cinco todos todas que_tengo que_se_me_han que_me_has_dado proveíd* provist* entregad*
        compartid* recibid* consultad* revisad* analizad* ofrecid* relevante* específic* concret* financier* anual*
        trimestral* complet* enter* extraíd* seleccionad* previo previa incluid* mencionad* contenid*""",
    "number": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    "the": """el la lo los las un una unos unas del al de en este esta estos estas ese esa esos esas dicho dicha mi
        tu su sus vuestra nuestra entre cualquier cualquiera ambos ambas otro otra otros otras""",
    "article": "el la lo los las un una este esta estos estas ese esa eso esto ello su sus tu",
    "prep": """según en con de del a al dentro por para basándome basándonos base acuerdo partir tras después
        revisar leer analizar examinar teniendo cuenta ateniéndome conforme vista luz dado sobre sin más entre
        basado basada basándose basados luego cuidadosamente detenidamente atentamente he haber revisado leído
        analizado examinado revisando analizando leyendo lectura revisión análisis únicamente exclusivamente solo
        solamente desde mediante usando utilizando ante considerando buscar una""",
    "read": "revisado leído analizado examinado repasado buscado consultado",
    "of": "de del sobre en",
    "that": "usted ustedes tú me se has ha han nos compart* proporcion* adjunt* envi* facilit* disp*",
    "about": "sobre en_cuanto acerca respecto con_respecto en_lo_que_respecta del de para",
    "who": """qué quién quiénes cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas por_qué si en_qué
        a_qué con_qué de_qué""",
    "hay": "hay existe existen había",
    "included": "incluid incluido incluida incluidos incluidas",
    "comma": ",",
    "available": "disponible disponibles accesible* incluid*",
    "able": "puedo podría pude logro consigo sabría",
    "permits": "permite* basta* alcanza* ayuda*",
    "enough": "suficiente suficientes",
    "has": "ha han",
    "only": "solo sólo solamente únicamente",
    "seems": "parece parecen llega llegan",
    "needs": "haría harían sería necesito necesitaría",
    # Verbs.
    "not": "no tampoco nunca ni",
    "negated": "no nunca ni tampoco sin ningun ninguna nada",
    "any": "ningún ninguna ninguno nada cualquier",
    "clitic": "se lo la los las le les me nos",
    "it": "lo la los las le les me nos",
    "can": """puedo puede pueden podemos podría podríamos podrían pude pudo sabría sabríamos es_posible
        resulta_posible sería_posible llego logro consigo""",
    "adverb": """lamentablemente embargo explícitamente expresamente directamente claramente específicamente
        exactamente suficiente suficientes también aquí ahí allí con_certeza con_exactitud con_seguridad
        absolutamente por_tanto en_cambio en_ningún_momento en_absoluto realmente concretamente explícita directa
        específica expresa precisa concreta clara detallada suficientemente necesariamente detalladamente
        particularmente de_forma_explícita de_manera_explícita de_forma_directa de_manera_directa
        de_forma_específica de_manera_específica en_concreto en_particular en_detalle adicional adicionales
        explícito directo específico específicos concreto concretos explícitos explícitas específicas concretas
        detallado detallados detalladas relevante relevantes exacta exacto exactas exactos precisas precisos propio
        propia definitivamente actualmente siquiera todavía aún simplemente fácilmente adecuadamente inmediatamente""",
    "soft": """explícitamente expresamente específicamente directamente claramente concretamente de_forma_explícita
        de_manera_explícita""",
    "names": """aborda abordan menciona mencionan indica indican especifica especifican detalla detallan dice dicen
        aclara aclaran explica explican revela revelan nombra nombran identifica identifican informa informan señala
        señalan alude aluden explicita explicitan concreta concretan consigna consignan discute discuten desglosa
        desglosan divulga divulgan profundiza profundizan cuantifica cuantifican""",
    "past": """proporcionó proporcionaron indicó indicaron especificó especificaron mencionó mencionaron reveló
        revelaron divulgó divulgaron detalló detallaron facilitó facilitaron precisó precisaron""",
    "told_se": """mencionarse compararse discutirse abordarse indicarse especificarse proporcionarse describirse
        detallarse encontrarse aparecer figurar mencionar haber""",
    "tells": """abord* mencion* indic* especific* detall* dice* decir dij* aclar* explic* revel* nombr* identific*
        inform* señal* alud* concret* consign* discut* desglos* divulg* profundiz* cuantific* analiz* examin*
        explor* compar* coment* resum* list* enumer* expon* defin* confirm* suger* sugier* afirm* declar* plante*
        elabor* justific* demuestr* relat* narr*""",
    "records": "recoge* cuenta cuentan precisa*",
    "holds": """contiene* da dan facilita* hace hacen contempla* responde* contesta* trae traen brinda* abarca*
        refleja* muestra* suministra* basta* alcanza* sirve* ayuda* guarda* cita* refiere* establece* presenta*
        registra* incluy* conten* proporcion* ofrec* mostr* aport* descri* trat* habl* enfoca* centra* posee permit*
        tien* provee* entra entran va van llega llegan""",
    "stands": "figura figuran consta constan",
    "appears": "aparece* viene vienen encuentra* está están es son desprende* deduce* infiere*",
    "describes": """describe* habla* centra* explica* menciona* narra* trata* relata* cuenta cuentan corresponde*
        refiere* aborda* presenta* contiene* expone* cita* detalla* ofrece* alude* informa* analiza* discute*
        examina* compara* estudia* investiga* contempla* aporta*""",
    "told": """mencionad* especificad* indicad* explicad* detallad* aclarad* precisad* proporcionad* facilitad*
        explicitad* divulgad* desglosad* discutid* abordad* revelad* señalad* nombrad* identificad* declarad*
        cuantificad* dich* definid* encontrad*""",
    "treated": """comparad* explorad* analizad* tratad* establecid* descrit* hallad* expuest* documentad* estudiad*
        discutid* disponible* examinad*""",
    "inf": """decirle decirte decirles determinarlo saberlo decirlo contestarla responderla responder contestar
        determinar determinarse saber saberse decir decirse precisar establecer deducir deducirse inferir inferirse
        indicar afirmar confirmar extraer conocer proporcionar facilitar ofrecer dar responderse contestarse sacar
        averiguar concluir ayudarte ayudarle verificar verificarlo confirmarlo responderle contestarle determinarla
        determinarlos calcular calcularlo calcularse identificar evaluar comparar comparado localizar encontrar
        hallar especificar detallar describir explicar aclarar precisarlo establecerlo obtener obtenerse encontrarse
        localizarse identificarse verificarse confirmarse establecerse precisarse ayudar sacarse proveer indicarle
        darle ofrecerle proporcionarle proporcionarte""",
    "known": """determinarse deducirse inferirse saberse responderse contestarse decirse ser_respondid*
        ser_contestad* ser_determinad* calcularse establecerse encontrarse confirmarse precisarse verificarse
        obtenerse""",
    "know": """sé sabemos encuentro encontré encontramos veo tengo tenemos dispongo disponemos logro consigo
        localizo he_encontrado hemos_encontrado he_podido he_hallado hallo cuento_con contamos_con puedo_encontrar
        pude_encontrar podemos_encontrar logré_encontrar logro_encontrar consigo_encontrar puedo_hallar pude_hallar
        he_logrado_encontrar he_podido_encontrar puedo_localizar pude_localizar puedo_ver puedo_dar puedo_ofrecer
        puedo_proporcionar puedo_ofrecerte puedo_proporcionarte parece_haber hemos_podido_encontrar aparece
        logré_hallar pude_identificar puedo_identificar logro_localizar""",
    "lacking": "insuficiente* falta* carece* desconocid* imposible omite omiten",
    # Fillers that may come before the sentence.
    "hedge": """ahí aquí allí desgraciadamente desafortunadamente perdone perdona me_temo siento lamento
        lamento_informar sin_embargo no_obstante pero por_tanto por_lo_tanto en_consecuencia así_pues así_que y
        mis_disculpas por_desgracia me_disculpo_pero mil_disculpas pido_disculpas le_pido_disculpas
        les_pido_disculpas mis_más_sinceras_disculpas perdona_pero en_realidad de_hecho por_consiguiente
        hasta_donde_puedo_ver hasta_donde_sé por_lo_que_veo hasta_donde_alcanzo_a_ver""",
    "apology": "lo_siento lo_siento_mucho lo_lamento disculpe disculpa disculpas me_disculpo perdón lamentablemente",
    # Words that no topic contains, mostly finite verbs: in a decline the topic comes before "no".
    "stops": """, que no es fue son eran era fueron estaba nunca tampoco ha han había hay tiene tienen tenía hizo
        hace hacen dice dicen dijo debe deben puede pueden va van será serán se representa sustituyó señala indican
        indica propone cita sigue vuelve procede cerró bajó subió costó aconseja refleja cuenta consiste incluye
        incluyen contiene describe comenzó empezó nació murió vive vivía quiso llegó estudió describen pierden corre
        est sont a_été le les du des dans au aux ce qui était ont une n et podría podrían debería tuvo tuvieron dio
        dieron pagó registró registraron aumentó disminuyó mejora mejoran reduce usa usan utiliza utilizan muestra
        muestran revela argumentan argumenta sostienen ofrece ofrecen requiere implica permite posee depende afirma
        sugiere explica espera esperan supera superan comprende abarca evita crea lleva llevan existe existen pasó
        quedó llamaba respondió""",
    "telling": """no ni ningún ninguna nada solo sólo únicamente menciona* indica* especifica* dice puedo texto
        contexto pasajes fragmentos si responde* parece* trata*""",
    # What no name begins with, and what does not continue one.
    "no_name": """, sí no she he it they es son fue el la los las él ella yo se en al yes* 0* 1* 2* 3* 4* 5* 6* 7*
        8* 9* i the a an as at by based according from given in on to we you there this that these those while since
        after before of for with when where who what which how why if although neither""",
    "no_more": ", no es son era fue ha han que se is are was were had has",
    "but": "pero sin_embargo no_obstante aunque",
    "worked": "calcul* sumando restando sumar restar dividiendo multiplicando obtenerse",
}

PARTS = {
    # Phrases: the text, a work, what was asked for, and where something is written.
    "head": "({passages} | {work} | {given} | {number} | {the} | ,)* (({of} | que {that}) ..)?",
    "the_text": "({the} | {given})* {passages} {head}",
    "the_work": "({the} | {given})* {work} {head}",
    "the_asked": "({the} | {given})* {asked}",
    "in_text": "{prep} ({prep} | {the} | {given})* ({passages} | {work}) {head}",
    "in_it": "(-{comma})* {in_text}",
    "lead": "{prep} ({prep} | {the} | {given})* ({passages} | {work} | {asked}) {head} ((que | y | de | del"
    " | cuyos) (-{comma})*)? ,? | {about} (-{comma})* , | (si bien | aunque) (-{comma})* ,",
    "opener": "(({hedge} | {apology}) (, | que)? | no (, | .) | {meta} ... (. | , | ,? {but} ,?) | (he | hemos) {read}"
    " ... (, | y | pero))*",
    "aside": ", (-{comma})* ,",
    # What the text does tell, before what it does not.
    "meta": "({the_text} | {the_work}) (se {describes} | -{no_more}) | se {describes} | {article} .. (se {describes}"
    " | (es | está | están | son) {told})",
    "end": ". | , | :",
    # "Any information".
    "lots": "{any} | {adverb} | {the} | {enough} | más | otra",
    "some": "({lots})* {information}",
    "any_info": "({lots} | {given})* ({information} | {findings})",
    # What follows the text as the subject: it does not say; for a work, it has to lack information.
    "no": "{not} {adverb}* {clitic}* {clitic}*",
    "can_not": "{can} {adverb}* (de | a | que)? {clitic}* {inf}",
    "tells_not": "{not} {adverb}* {it}* (({seems} {adverb}* {clitic}*)? {tells} | {has} {told}"
    " | trata | tratan | (versa | versan) sobre | (deja | dejan) claro | {seems} {holds} {any_info})"
    " | {no} ({names} | {records} | {holds} {any_info} | {can_not}) | (guarda | guardan) silencio",
    "silent": "{tells_not} | {no} ({holds} | {seems} {holds}) | no (tiene | tienen) ({some} | relación | nada)"
    " | {lacking} | (es | son | resulta) {adverb}* {lacking}"
    " | {not} (es | son | resulta) {adverb}* {enough} | nada (dice | dicen | indica) | (deja | dejan) sin {inf}",
    # What was asked for is not stated.
    "told_not": "({not}) {adverb}* (se {adverb}* ({names} | {has} {told} | {past} {adverb}* ({end} | {in_text}))"
    " | se {past} {adverb} | {stands} ({end} | {in_text} | {article}) | se? {appears} ({given}* {in_text} | en ninguna"
    " parte)"
    " | (parece | parecen) {told_se} | (queda | está) {adverb}* (claro | clara) ({end} | {in_text})"
    " | se {can} {adverb}* {inf} {adverb}* {in_text} | {can} {known} {adverb}* {in_text}"
    " | (es | está | están | son | ha sido | han sido) {adverb}* ({told} | {treated} {adverb}* {in_text}))",
    "name": "-{no_name} (-{no_more})?",
    "to_question": "((a | para) {the}* {given}* (pregunta | cuestión))?",
    "label": "(la | mi | nuestra)* (respuesta | pregunta | resultado | conclusión | solución) (final | corta"
    " | correcta)? {to_question}",
}

SPANISH = Language(
    name="Spanish",
    words=WORDS,
    parts=PARTS,
    start="{opener} {lead}* {opener}",
    labels=(
        "{label} (: | .) | (aquí está | esta es) {label} :",
        "{label} (es | sería | queda) ({adverb} | la siguiente)* :?",
    ),
    explains=(
        (
            "porque | ya que | pues | dado que | debido a | puesto que"
            " | {article} ({given} | {passages} | {work} | {asked})"
        ),
        "{hedge} | {prep} ({the} | {given})* ({passages} | {work})",
        "no se | no hay | no consta | falta",
    ),
    declines=(
        # The text does not say.
        "{the_text} {aside}? {silent}",
        "{the_work} {aside}? {tells_not}",
        (
            "en? (ninguno | ninguna | ningún) (de {the}*)? ({passages} | {work}) {head} {clitic}?"
            " ({names} | {holds} | {appears})"
        ),
        (
            "{the_text} se? (termina | terminan | detiene | detienen | acaba | acaban | interrumpe | interrumpen"
            " | cortan) antes"
        ),
        "{the_text} {only} {describes} | {meta} ... , {but} no ({article} | {who})",
        "(haría falta | se necesitaría | necesitaría) .. ({passages} | {work})",
        "ni ({the_text} | {the_work}) ni ({the_text} | {the_work}) ({names} | {holds} | {tells})",
        "nada {in_text} ({names} | {holds} | {tells})",
        "(si bien | aunque) ({the_text} | {the_work}) (-{comma})* , {silent}",
        # There is no information; the subject comes after the verb.
        "{told_not}",
        (
            "no ({hay} | {appears} | {stands} | tiene) ({some} | {any_info} {given}*"
            " (al respecto | {about} | para {inf} | {enough} | {end}))"
        ),
        "no {hay} {in_it}",
        "{lead} {opener} no (se? encuentra | se? encuentran | {hay}) {any_info}",
        "no se {clitic}* ({names} | {holds} | {tells} | {has} {told} | encuentra | encuentran | tiene) {any_info}",
        "no se ({holds} | {tells} | {has} {told} | encuentra | encuentran) (({lots}) ..)? {in_text}",
        (
            "(nada | en (ningún lugar | ningún momento | ninguna parte) {in_text}?) se ({names} | {tells})"
            " ({end} | {in_text} | {about} | {who} | {article})"
        ),
        "(falta | faltan) {some}",
        "{some} no ({told} | {available})",
        "(no {told} | sin (respuesta | información | datos) | desconocido | desconocida | ni idea) ({end} | {in_text})",
        # The model does not know.
        (
            "(yo | nosotros)? no {clitic}* ({know} ({any_info} | {end} | {who}) | {able} {adverb}* (de | a)? {clitic}*"
            " {inf} | (estoy en condiciones | soy capaz) de {inf} | estoy seguro)"
        ),
        "no {clitic}* {know} ... {in_text} | {lead} no {clitic}* {know} {article}",
        "no {clitic}* (podemos | podríamos) {adverb}* {clitic}* {inf} ({end} | {in_it})",
        "no poder {clitic}* {inf}",
        "(desconozco | desconocemos | ignoro | se desconoce ({end} | {who} | {in_text}) | no lo (dice | dicen) {end})",
        "({article} ..)? (queda | quedan) (sin {inf} ({end} | {in_text}) | fuera {in_text})",
        "-{no_name} (-{no_more})? : (no {told} ({end} | {in_text}) | {told_not})",
        "no ({clitic}* (es | resulta) posible | hay (forma | manera | modo) de | se {can} {adverb}*) {clitic}* {inf}",
        "no ((puede | pueden) (ser (respondida | contestada) | {known}) | (se | me) (desprende | deduce | infiere))",
        "(no ((está | queda) claro | se sabe ,? {in_text}) | {lead} no se sabe {who})",
        "(me resulta | me es | es | resulta)? imposible {clitic}* {inf}",
        "para (responder | contestar) .. {needs}",
        # What was asked for is not stated.
        "({article} | {apology} ,? (pero | que)?) .. (que -{negated} ..)? {told_not}",
        "{article} .. no ({names} | {holds} | (ha | han) {told}) ({soft} | {in_it})",
        "{name} no (se {adverb}* ({names} | {has} {told}) | {appears} | (es | ha sido) {told}) {adverb}* {in_text}",
        "{lead} no (consta | constan | figura | figuran) ",
        "{article} .. no se {adverb}* ({tells} | {holds}) ({adverb} | {given})* {in_text}",
        "{any} .. (se ({names} | {holds} | {tells}) | {appears}) {adverb}* {in_text}",
        (
            "{the_asked} ({head} | {asked})* (no (es | son | resulta) {adverb}* ({enough} | clara) | {no} {permits}"
            " | no (puede | pueden) (ser | {inf}) | no se ({names} | {holds} ({end} | {in_text}) | encuentra"
            " | encuentran | {can} {inf}) | no (está | están) ({available} | {in_text}) | no tiene respuesta)"
        ),
        "{who} (-{comma})* ,? (({the_text} | {the_work}) {silent} | {told_not})",
        (
            "{meta} ... (. | , | ,? {but}) {lead}? (ellos | {article} ..)? ({silent} | no se {names} | no {appears}"
            " {end} | no puedo)"
        ),
        "{lead} no {appears} {any}",
        "{meta} ... (. | , | ,? {but}) {article} .. no (está | están | viene | vienen) {included} {end}",
    ),
    answers=(
        "... , (pero | aunque | aun así | sino) (-{telling})* (. | :)",
        "(... {negated} ... .?)? {but} (-{negated})* {worked}",
    ),
    aside="""texto* pasaje* contexto* fragmento* extracto* documento* fuente* material* contenido* archivo* artículo*
        informe* sección* libro* capítulo* acta* autor* página* tabla* pregunta* respuesta* información dato* detalle*
        mencion* describ* habla* trata* indica* dice* conten* contiene* señala* proporcion* ofrec* presenta* compara*
        muestra* cita* parece* no nada ni nunca ningun* ningún sin desconoc* falta* embargo aunque si que qué cuál*
        quien* quién* cómo cuándo dónde podría* sería* se""",
    listing="y o e como tal tales ejemplo especialmente para",
    only="solo sólo solamente únicamente",
    no="no",
    asks=(
        "({tells} | {records} | {told} | {information} | claro | saber | sabe) {adverb}* (de | sobre | a)? {who}",
        "(imposible | suficiente | suficientes | responder | determinar | saber | claro | contestar)",
    ),
    speech="dijo dijeron respondió contestó replicó admitió afirmó",
)
