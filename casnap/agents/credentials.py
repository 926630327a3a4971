"""What in a line of text is a secret, or is said to be one, made unreadable.

It goes by what is written before a value (``password=``, ``Authorization:``, ``--token``, ``curl -u``), by the forms of
well-known keys, and by how random a long word looks. Of what is doubtful rather too much is hidden than too little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

HIDDEN = "[hidden]"

_NAME = r"""(?:
      pass (?: word | wd | phrase | code ) s? | (?<![a-z]) (?: pwd | psw | otp ) (?![a-z]) | (?<= [_-] ) pass (?![a-z])
    | secret (?!ar)
    | token (?! i[sz] | s? [\s_-]? (?: count | limit | type | budget | usage ) | s \s* [:=：] \s* \d{1,7} \b )
    | (?: api | access | account | private | secret | shared | master | sign | signing | encryption | auth | ssh
        | deploy | license | client | service | storage | app | consumer | webhook | session | hmac ) [\s_-]? key s?
    | credential s? | connection [\s_-]? string
    | 密码 | 口令 | 密钥 | 秘钥 | 令牌 | 私钥 | 凭据 | 凭证 | 验证码 | 授权码 )"""
"""What a secret is called, perhaps as a part of a longer name."""

_IS = r"""\\* ["'`”’\])]* \s* (?: := | => | -> | ==? | [:：=＝] | (?<= ["'] ) , ) \s* (?: [|>] [+-]? \s+ )?"""
"""Between a name and its value; the last part is how YAML begins a block."""

_SPOKEN_OF = r"""(?: option | flag | arg | argument | param | parameter | switch | to | is | and | or | from | in | as
    | for | should | must | with | instead | support | 选项 | 参数 ) s? [.,;:!?)]* (?: \s | $ )"""
"""What follows an option that is only spoken of."""

_BEFORE_A_VALUE = (
    rf"{_NAME} [\w.-]* {_IS}",
    rf"(?<![\w-]) --? (?: [\w-]*[_-] )? {_NAME} [\w-]* (?: \s*=\s* | \s+ ) (?! {_SPOKEN_OF} )",
    rf"""{_NAME} \s* (?: \s (?: is | are | was ) \s | 是 | 为 ) \s* (?= ["'`“「] | (?= [!-~]* [0-9] ) [!-~]{{4}} )""",
    r"""(?: (?: password | passphrase | passwd ) \s+ | (?: 密码 | 口令 ) \s* )
        (?= "[^"]+" | '[^']+'(?!\w) | `[^`]+` | “[^”]+” )""",
    r"""(?: password | passwd | 密码 | 口令 ) \s+ (?! sha | md5 | argon | bcrypt | pbkdf | base | oauth | utf )
        (?= [!-~]* [0-9] ) (?= [!-~]* [a-z] ) (?= [!-~]{6} )""",
    r"_auth (?: token )? \s+",
    r"""(?<![\w-]) (?: -u \s* | --(?:proxy-)?user [\s=]+ ) (?= ["']? [^\s:"']* : )""",
    r"\b (?: mysql\w* | mariadb\w* | sshpass | redis-cli | (?: docker | podman ) \s login ) \b [^|;&]*? \s -[pa] \s*",
    r"\b login \s+ \S+ \s+ password \s+",
    r"\b bearer \s+ (?= \S* [0-9] | \S{20} )",
    r"\b basic \s+ (?= [a-z0-9+/]{16,} ={0,2} (?![\w=]) | [a-z0-9+/]{4,} ={1,2} (?![\w=]) )",
    r"[?&;] (?: key | sig | signature | code | auth | access | session | sid ) =",
)
"""What a value follows, as :func:`_end_of_value` finds it: names, options, what people say, commands, addresses."""

_BEFORE_A_HEADER = (rf"authorization {_IS}", rf"(?<![a-z]) cookie {_IS}")
"""Headers, whose values are of several words."""

_BEFORE_WORDS = (
    rf"(?: passphrase | mnemonic | seed \s phrase | recovery \s (?: code | key | phrase ) | 助记词 ) s? {_IS}",
    r"; \s* (?: pwd | password ) \s* =",
    rf"< [\w:.-]* {_NAME} [\w:.-]* [^<>]* >",
)
"""What is followed by any words, up to a tag or the end."""

_KEY_BLOCK = r"-----BEGIN [^-]* ----- .*? (?: -----END [^-]* ----- | $ )"

_IN_ADDRESS = r"""(?<= :// ) (?: [^\s/@:]* : (?! \d{1,5} / ) \S* | (?= [^\s/@]* [0-9] ) [^\s/@]{8,} ) (?= @ )
    | (?<! [\w@:/.+-] ) (?! mailto: ) [\w.+-]+ : (?! // ) [^\s@:/] \S{2,} (?= @ [\w\[(] )"""
"""Users and passwords, also passwords that hold an @; not a port, nor the user of git."""

_FORMS = r"""(?<![A-Za-z0-9_-]) (?:
      (?: gh[opsur]_ | github_pat_ | gl[a-z]{2,6}- | dckr_[a-z]+_ | xox[a-z]- | xapp- | sk-ant- | dop_v1_ | shp[a-z]{2}_
        ) [A-Za-z0-9_-]{6,}
    | (?: sk | pk | rk | hf | npm | pypi | whsec | key | lin_api | figd | tskey ) [-_] (?= [a-z_-]* [A-Z0-9] )
        [A-Za-z0-9_-]{8,}
    | (?: SG | ya29 | hv[sb] ) \. [A-Za-z0-9_-]{6,} (?: \. [A-Za-z0-9_-]+ )*
    | A[KS]IA [A-Z0-9]{12,} | AIza [A-Za-z0-9_-]{20,} | AGE-SECRET-KEY-1 [A-Z0-9]+
    | eyJ [A-Za-z0-9_-]{8,} (?: \. [A-Za-z0-9_-]+ )*
    | \d{8,10} : [A-Za-z0-9_-]{30,}
    | [A-Za-z0-9_-]{20,} \. [A-Za-z0-9_-]{6} \. [A-Za-z0-9_-]{20,} )"""
"""Keys of well-known services."""


def _compiled(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.VERBOSE | re.IGNORECASE | re.DOTALL)


_before_a_value = [_compiled([pattern]) for pattern in _BEFORE_A_VALUE]
_before_a_header, _before_words = _compiled(_BEFORE_A_HEADER), _compiled(_BEFORE_WORDS)
_key_block, _in_address = _compiled([_KEY_BLOCK]), _compiled([_IN_ADDRESS])
_forms = re.compile(_FORMS, re.VERBOSE)
_long = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}")
_scheme = re.compile(r"(?i)(?:(?:bearer|basic|token|bot|apikey)\s+)?")
_quote = re.compile(r"""\\*["'`]|[“‘「]""")
_around_header = re.compile(r"[^\"'`]*")
_words = re.compile(r"[^<]*")

_CLOSING = {"“": "”", "‘": "’", "「": "」"}
_AFTER_A_VALUE = ",;:)]}>，。；"

_LONG = 32
"""Characters of a word that is held for random even without both capitals and small letters."""

_PART = re.compile(r"[A-Za-z]*[0-9]{0,4}|(?=.{1,10}$)[A-Za-z]+[0-9]{1,4}[A-Za-z]+")
"""A part of a path or of a name that people make: digits stand at its end, or it is short."""

_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS_OF_NAMES, _RUNS_OF_PATHS, _RUNS_OF_KEYS = 4.5, 3.2, 2.0
"""Runs of one kind of character are longer on average in names of one piece, and in those of many; shorter in keys."""


def hide(text: str) -> str:
    """``text``, which is one line, with what is a secret hidden."""
    text = _key_block.sub(HIDDEN, text)
    text = _hide_after(_before_words, text, lambda said, at: _match_end(_words, said, at))
    text = _hide_after(_before_a_header, text, _end_of_header)
    for before in _before_a_value:
        text = _hide_after(before, text, _end_of_value)
    text = _forms.sub(HIDDEN, _in_address.sub(HIDDEN, text))
    return _long.sub(lambda found: HIDDEN if _is_random(found[0]) else found[0], text)


def _hide_after(before: re.Pattern[str], text: str, end_of: Callable[[str, int], int]) -> str:
    """Hide what follows each match, up to where it ends."""
    parts, at = [], 0
    for found in before.finditer(text):
        if (end := end_of(text, found.end())) <= max(at, found.end()):
            continue
        if found.end() >= at:  # else it only goes on with what is hidden
            parts += [text[at : found.end()], HIDDEN]
        at = end
    return "".join((*parts, text[at:]))


def _end_of_header(text: str, at: int) -> int:
    """Of what a header holds: all within the quotes that are around it, or around the header."""
    return _end_of_value(text, at) if _quote.match(text, at) else _match_end(_around_header, text, at)


def _end_of_value(text: str, at: int) -> int:
    """A value is in quotes, or a word as shells have it, with quoted parts; one that is cut off ends with the line."""
    first = position = _match_end(_scheme, text, at)
    while position < len(text) and not text[position].isspace():
        quote = _quote.match(text, position)
        if quote is None:
            position += 2 if text[position] == "\\" else 1
            continue
        if position > first and (quote.end() == len(text) or text[quote.end()].isspace()):
            break  # it closes what is around
        position = _end_of_quoted(text, quote)
        if quote.start() == first and text[position : position + 1] in _AFTER_A_VALUE:
            break
    return min(position, len(text))


def _end_of_quoted(text: str, quote: re.Match[str]) -> int:
    closing = _CLOSING.get(quote[0], quote[0])
    found = text.find(closing, quote.end())
    while found > quote.end() and text[found - 1] == "\\":  # it is a quote within
        found = text.find(closing, found + 1)
    return len(text) if found < 0 else found + len(closing)


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _is_random(word: str) -> bool:
    """Whether a long word looks like one that nobody has made up."""
    runs = _RUN.findall(word)
    average = sum(map(len, runs)) / max(1, len(runs))
    has_digits = any(each.isdigit() for each in word)
    if has_digits and re.fullmatch(r"[0-9a-fA-F]+", word):
        return True
    is_mixed = has_digits and word not in (word.lower(), word.upper())
    if len(word) < _LONG and not is_mixed:
        return 0 < average < _RUNS_OF_KEYS
    parts = re.split(r"[/_+-]", word.rstrip("="))
    if 0 < average < (_RUNS_OF_NAMES if len(parts) == 1 else _RUNS_OF_PATHS):
        return True
    return has_digits and not all(_PART.fullmatch(part) for part in parts)
