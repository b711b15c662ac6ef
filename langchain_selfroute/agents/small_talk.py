"""Tell questions from small talk: messages that only greet, thank, agree or say goodbye, in six languages.

A message is small talk if all of its words are in the lists below and one of them is enough by itself, as "hello" and
"ok" are. What ends with a question mark is small talk only if it asks how somebody is. Where the lists could go either
way they leave a word out: to search for a greeting costs little, and a question that is taken for one is not answered
from the documents.
"""

from __future__ import annotations

import re
import unicodedata

from selfroute.documents.access import has_words

# What is enough by itself, in languages that write spaces between words.
_ENOUGH = """
hello, hi, hiya, hey, howdy, greetings, good morning, good afternoon, good evening, good night, goodnight, good day,
bye, goodbye, good bye, see you, see ya, cya, farewell, take care, have a nice day, have a great day, have a good day,
have a good one, have a nice weekend, thanks, thank you, thank u, thx, ty, much appreciated, ok, okay, yes, yeah, yep,
no, nope, sure, alright, all right, great, got it, understood, no problem, no worries, you're welcome, you are welcome,
sounds good, never mind, well done, good job, lol, wow, how are you, how are you doing, how's it going, what's up,
nice to meet you,

hallo, moin, servus, grüß gott, grüß dich, grüezi, guten morgen, guten tag, guten abend, gute nacht, tschüss, tschüs,
tschau, ciao, auf wiedersehen, wiedersehen, bis bald, bis später, bis morgen, bis dann, mach's gut, schönen tag,
schönen abend, schönes wochenende, viele grüße, danke, dankeschön, vielen dank, besten dank, herzlichen dank, ja, nein,
alles klar, kein problem, gern geschehen, wie geht's, wie geht es dir, wie geht es ihnen,

bonjour, bonsoir, salut, coucou, bonne nuit, bonne journée, bonne soirée, bon week-end, au revoir, à bientôt, à demain,
à plus tard, merci, je vous remercie, oui, non, d'accord, de rien, très bien, ça va, comment ça va, comment allez-vous,

hola, buenas, buenos días, buen día, buenas tardes, buenas noches, adiós, hasta luego, hasta pronto, hasta mañana,
nos vemos, chao, saludos, gracias, sí, de acuerdo, de nada, muy bien, igualmente, qué tal, cómo estás, cómo está,
cómo está usted
"""
# What people put around that.
_AROUND = """
there, all, everyone, everybody, folks, team, again, so, very, much, a lot, lots, many, a million, cool, nice, perfect,
good, wonderful, fine, cheers, and, then, later, soon, tomorrow, friend, my friend, sir, madam, for your help,
for the help, for your answer, for your time, for that, for this, for everything, you too, for now, oh, that's all,
that's great, that helped, please, morning, evening,

zusammen, alle, allerseits, leute, sehr, vielmals, nochmals, noch, einen, ein, schön, ich, dir, ihnen, euch,
für die hilfe, für deine hilfe, für ihre hilfe, für die antwort, dafür, gut, super, prima, toll, und, bitte, genau,

beaucoup, bien, infiniment, mille, tout le monde, à tous, à toutes, à vous, à toi, et, pour votre aide, pour ton aide,
pour votre réponse, pour tout, madame, monsieur, parfait, encore, s'il vous plaît, s'il te plaît,

a todos, a todas, muchas, muchísimas, mil, por todo, por tu ayuda, por su ayuda, por la ayuda, amigo, amiga, y, vale,
perfecto, genial, claro, de nuevo, por favor
"""
# The same for Chinese and Japanese, which write none.
_ENOUGH_JOINED = """
你好, 您好, 你们好, 大家好, 嗨, 哈喽, 早安, 早上好, 中午好, 下午好, 晚上好, 晚安, 再见, 拜拜, 回头见, 明天见,
谢谢, 多谢, 感谢, 谢了, 好的, 没问题, 不客气, 知道了, 明白了, 收到, 太好了, 辛苦了, 你好吗, 您好吗,
你們好, 再見, 回頭見, 明天見, 謝謝, 多謝, 感謝, 沒問題, 不客氣,

こんにちは, こんばんは, おはよう, おやすみ, さようなら, さよなら, じゃあね, じゃあまた, またね, また明日, バイバイ,
ありがとう, 有難う, どうも, はじめまして, お疲れ様, お疲れさま, はい, うん, 了解, わかりました, 承知しました,
お願いします, お元気ですか
"""
_AROUND_JOINED = """
你, 您, 你们, 你們, 大家, 了, 啊, 呀, 哦, 嗯, 非常, 十分, 很, 的帮助, 的幫助, なさい, ございます, ございました,
本当に, とても, みなさん, 皆さん, ね, です, でした, しました
"""
_ASKING = """
how are you, how are you doing, how's it going, what's up, wie geht's, wie geht es dir, wie geht es ihnen, ça va,
comment ça va, comment allez-vous, qué tal, cómo estás, cómo está, cómo está usted, 你好吗, 您好吗, お元気ですか
"""
_LONGEST = 200  # characters
_UNLIKE = frozenset({"si"})  # "sí" says yes, and "si" asks whether


def is_question(text: str) -> bool:
    """Return whether a text with words is more than small talk; one of more than 200 characters is.

    Examples:
        >>> is_question("Hi there!"), is_question("Thanks a lot :)"), is_question("Hello, who chaired the meeting?")
        (False, False, True)
    """
    if len(text) > _LONGEST:
        return True
    words = _plain(text)
    if has_words(_KNOWN.sub(" ", words)) or not _SUFFICES.search(words):
        return True
    return bool(_QUESTION_MARK.search(text)) and not _ASKS_HOW.search(words)


def _plain(text: str) -> str:
    """Return a text without capitals and marks, and with single spaces."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _without_accents(text: str) -> str:
    letters = (one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return "".join(letters)


def _any_of(spaced: str, joined: str = "") -> re.Pattern[str]:
    """Return a pattern for the words of two lists, of which the longest is found; many people type no accents."""
    words = {_plain(one) for one in spaced.split(",")}
    words |= set(map(_without_accents, words)) - _UNLIKE
    others = {_plain(one) for one in joined.split(",")}
    whole, inside = ("|".join(sorted(one - {""}, key=len, reverse=True)) for one in (words, others))
    return re.compile(rf"\b(?:{whole})\b" + (f"|{inside}" if inside else ""))


_SUFFICES = _any_of(_ENOUGH, _ENOUGH_JOINED)
_KNOWN = _any_of(f"{_ENOUGH},{_AROUND}", f"{_ENOUGH_JOINED},{_AROUND_JOINED}")
_ASKS_HOW = _any_of(_ASKING, _ASKING)
_QUESTION_MARK = re.compile(r"[?\uff1f]|[吗嗎か]\W*$")
