"""What a label shows of a prompt never holds a secret, and ordinary prompts are left as they are."""

from __future__ import annotations

import base64
import hashlib
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from casnap.agents.credentials import HIDDEN, hide
from casnap.agents.labels import MOST, label_of

WORD = "".join(sorted(set(string.printable) - set(string.whitespace) - set("\"'`\\<>")))

WORDS = st.text(WORD, min_size=6, max_size=40).filter(lambda text: text[0] not in "|>")
"""Passwords without spaces and quotes."""

PHRASES = st.text(WORD + " ", min_size=6, max_size=40).map(str.strip).filter(lambda text: len(text) > 5)
"""Passwords that only quotes keep together."""

AFTER_A_NAME = [
    "Authorization: Bearer {}",
    "Authorization: Basic {}",
    'curl -H "Authorization: Bearer {}" https://host/path',
    "curl -H 'X-Api-Key: {}' https://host/path",
    "--password {}",
    "--token={} and so on",
    "run it --api-key {} now",
    "curl -u user:{}",
    "curl --user name:{} https://host",
    "mysql -uroot -p{} base",
    "api key: {}",
    "pwd: {}",
    "AccountKey={}",
    "DB_PASSWORD={} make",
    "export AWS_SECRET_ACCESS_KEY={}",
    "db_pass={}",
    "password: |\n  {}",
    "密码：{}",
    "口令: {} 请登录",
    "令牌={}",
    "machine host login me password {}",
    "<password>{}</password>",
    "token => {}",
    "passphrase: {}",
    "set client-secret := {}",
    "Cookie: {}",
    "password = Bearer {}",
    "npm config set //registry.npmjs.org/:_authToken {}",
]

IN_QUOTES = [
    '"password": "{}"',
    "password='{}'",
    'secret_key = "{}"',
    '{{"a": 1, "api_key": "{}", "b": 2}}',
    '{{"password":"{}"}}',
    r"{{\"password\": \"{}\"}}",
    "--password '{}' next",
    '--token="{}"',
    "curl -u 'user:{}'",
    "password `{}` is it",
    "密码“{}”",
    "密码：“{}”",
    'setenv("DB_PASSWORD", "{}")',
    "'token' => '{}',",
    'headers = {{"Authorization": "Bearer {}"}}',
    "password is '{}'",
    "seed phrase: {}",
    "mnemonic = {}",
    "<secret>{}</secret>",
]


def parts(secret: str) -> set[str]:
    """What of a secret may not be seen."""
    return {secret[at : at + 4] for at in range(len(secret) - 3)}


def assert_hidden(form: str, secret: str) -> None:
    frame = form.format("\0")  # what is around a secret may be seen, also where the secret holds the same
    visible = {part for part in parts(" ".join(secret.split())) if part not in " ".join(frame.split())}
    for shown in (hide(" ".join(form.format(secret).split())), label_of(form.format(secret))):
        assert not {part for part in visible if part in shown.replace(HIDDEN, "\0")}, shown


@pytest.mark.parametrize("form", AFTER_A_NAME)
@given(secret=WORDS)
def test_no_part_of_a_word_that_is_said_to_be_a_secret_is_shown(form: str, secret: str) -> None:
    assert_hidden(form, secret)


@pytest.mark.parametrize("form", IN_QUOTES)
@given(secret=PHRASES)
def test_no_part_of_a_secret_in_quotes_is_shown(form: str, secret: str) -> None:
    assert_hidden(form, secret)


@given(secret=WORDS, scheme=st.sampled_from(["https", "postgres", "redis", "ssh"]), user=st.sampled_from(["u", ""]))
def test_no_part_of_a_password_in_an_address_is_shown(secret: str, scheme: str, user: str) -> None:
    assume(not secret[:5].split("/")[0].isdigit())  # which would be a port
    assert_hidden(f"{scheme}://{user}:{{}}@host.example/path", secret)
    assert_hidden("https://u:p@{}@host", secret)


def random_text(seed: int, alphabet: str, length: int) -> str:
    digest = b"".join(hashlib.sha256(b"%d %d" % (seed, at)).digest() for at in range(length))
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


SEEDS = range(200)
"""Always the same: one random text in many thousands looks like a name."""

KEYS = [
    ("ghp_{}", 36),
    ("github_pat_{}", 60),
    ("glpat-{}", 20),
    ("dckr_pat_{}", 27),
    ("SG.{}.rest", 22),
    ("xoxb-123-{}", 24),
    ("sk-ant-api03-{}", 40),
    ("sk_live_{}", 24),
    ("npm_{}", 36),
    ("pypi-AgEIcHlwaS5vcmc{}", 50),
    ("hf_{}", 34),
    ("eyJhbGciOiJIUzI1NiJ9.{}.sig", 40),
    ("AIza{}", 35),
    ("hvs.{}", 24),
    ("{}", 40),
    ("the key is {} and", 40),
    ("https://hooks.example/services/T0/{}", 40),
    ("https://host/?a=b&sig={}", 43),
]


@pytest.mark.parametrize(("form", "length"), KEYS)
def test_no_part_of_a_key_is_shown_that_is_known_by_its_form(form: str, length: int) -> None:
    for seed in SEEDS:
        assert_hidden(form, random_text(seed, string.ascii_letters + string.digits, length))


@pytest.mark.parametrize("seed", SEEDS[::10])
def test_no_part_of_what_is_random_is_shown(seed: int) -> None:
    data = hashlib.sha512(b"%d" % seed).digest()
    for text in (data.hex(), data[:16].hex(), data[:12].hex(), base64.b64encode(data).decode()):
        assert_hidden("look at {} please", text)
    assert_hidden("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", base64.b64encode(data).decode())
    assert_hidden("-----BEGIN OPENSSH PRIVATE KEY-----\n{}", base64.encodebytes(data).decode())
    assert_hidden("AKIA{}", random_text(seed, string.ascii_uppercase + string.digits, 16))


@pytest.mark.parametrize("before", range(100, 200, 7))
def test_what_is_left_of_a_secret_where_the_prompt_is_cut_is_not_shown(before: int) -> None:
    long = "eyJ" + "a1B2" * (before // 4)
    assert "ghp" not in label_of(f"{long} use ghp_{'a1' * 20}"[:200])
    assert "secr" not in label_of(f"{long} password: 'my secret words and {'so on ' * 40}"[:200])


def test_what_a_quote_holds_ends_with_the_quote() -> None:
    assert hide('{"password":"x y","user":"bob"}') == f'{{"password":{HIDDEN},"user":"bob"}}'
    assert hide('curl -H "Authorization: Bearer xyz" https://h/x') == f'curl -H "Authorization: {HIDDEN}" https://h/x'
    assert hide("password=a\\ b'c d'e f") == f"password={HIDDEN} f"
    assert hide(r'"password": "a \" b" c') == f'"password": {HIDDEN} c'
    assert hide("password: token: abc") == f"password: {HIDDEN} {HIDDEN}"
    assert hide("Server=h;Pwd=x y;Database=d") == f"Server=h;Pwd={HIDDEN}"


@pytest.mark.parametrize(
    "prompt",
    [
        "fix the login page, the password field loses focus",
        "add a --password option to the CLI",
        "document the --token flag.",
        "fix the Authorization header parsing",
        "rename TokenStream to Tokens and set max_tokens=4096",
        "why is the tokenizer: slow?",
        "the user's password isn't checked, is it?",
        "the password is wrong and the token is expired",
        "explain basic authentication and bearer tokens",
        "make the basic html5 page",
        "hash the password sha256 first, then compare",
        "the secretary: Ada; the author: Bob",
        "read src/some/long/path/without/any/digit/in/it.py",
        "rename getApplicationConfigurationProviderFactory",
        "------------------------------------------",
        "move source/unit/test_agents_plugins2/thing.py",
        "see docs/2024-01-15-some-long-title-for-a-post",
        "clone git@github.com:owner/repository.git",
        "open https://host:8080/@scope/package?page=2#top",
        "write to ada@example.com or mailto:bob@host.example",
        "bump numpy from 1.26.4 to 2.0.1 in requirements",
        "revert a1b2c3d and 0123456789ab",
        "python -u main.py | tee out.log",
        "use Python 3.11, not 3.10; see PEP-517",
        "sort by key: name, then by size",
        "git commit -m 'auth: fix login'",
        "修复登录页面的密码校验",
        "把令牌桶算法改成滑动窗口",
        "密码是错误的时候提示用户",
        "为什么密码框不能粘贴？请修复",
        "给密钥管理模块加单元测试，覆盖率到 90%",
        "重构 src/utils/http2_client.py 里的 Token 类",
    ],
)
def test_an_ordinary_prompt_is_left_as_it_is(prompt: str) -> None:
    assert hide(prompt) == prompt
    assert label_of(prompt) == (prompt if len(prompt) <= MOST else prompt[: MOST - 1].rstrip() + "…")


@given(st.text(), st.sampled_from(["password", "token: ", "'", '"', "\\", "://", "-----BEGIN ", "@", ""]))
def test_any_text_is_hidden_or_left_in_one_way(text: str, more: str) -> None:
    once = hide(" ".join(f"{text}{more}{text}".split()))
    assert isinstance(once, str)
