"""Real servers on the loopback, each with its own configuration in a scratch directory.

The paths below `/`, if a server has them:

plain: the file, with the server's own validators; tagged: with a strong ETag, if the server makes none; weak, date,
none: with a weak ETag, with Last-Modified alone, without a validator; noranges: Range is ignored; moved: 302 to plain;
forced: with a Content-Encoding that was not requested; coded: with one because the file is named .gz; app: what
origin.py sends; counted: 20 requests a second at most; few: two connections at most, and slowly.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from nginx import Nginx, free_port

HERE = Path(__file__).resolve().parent
SYSTEM_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
# Seconds until a server has its port, or has ended.
PATIENCE = 20
FILES = frozenset({"plain", "weak", "date", "none", "noranges", "moved"})
ALL = FILES | {"app"}
LIMITS = frozenset({"counted", "few"})
# Requests a second below /counted, and how many more may come at once.
COUNTED, BURST = 20, 10
CREDENTIALS = "user:open-sesame"


@dataclass
class Place:
    """The servers' directory, and what they share."""

    work: Path
    site: Path
    # The files of the certificate for 127.0.0.1 and of its authority.
    key: Path
    certificate: Path
    authority: Path
    # The ports of nginx with the files, plain and with TLS; and of origin.py.
    files: int = 0
    secure_files: int = 0
    app: int = 0

    @property
    def log(self) -> Path:
        """The status and the path of each request to nginx."""
        return self.work / "access.log"


@dataclass
class Server:
    """A server that can be tested. `programs`: what has to be installed."""

    name: str
    place: Place
    programs: tuple[str, ...] = ()
    paths: frozenset[str] = ALL
    is_secure: bool = False
    # Whether an interrupted download of /plain can be resumed.
    resumes: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen | None = None
    port: int = 0

    @property
    def state(self) -> Path:
        return self.place.work / self.name.replace(" ", "-")

    def missing(self) -> list[str]:
        return [program for program in self.programs if shutil.which(program, path=SYSTEM_PATH) is None]

    def prepare(self) -> None:
        """Writes its configuration; `port` is set already."""

    def command(self) -> list[object]:
        raise NotImplementedError

    def url(self, path: str) -> str:
        return f"{'https' if self.is_secure else 'http'}://127.0.0.1:{self.port}/{path}"

    def start(self) -> None:
        if not self.port:
            self.state.mkdir()
            self.state.chmod(0o777)
            self.port = free_port()
            self.prepare()
        with open(self.state / "said", "ab") as said:
            environment = os.environ | {"PATH": SYSTEM_PATH, "HOME": str(self.state)}
            self.process = subprocess.Popen(
                [str(word) for word in self.command()], stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment,
                cwd=self.state, start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while not is_open(self.port):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.name} does not start: {(self.state / 'said').read_text(errors='replace')}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Cuts all connections: the server and its children are killed."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            end = time.monotonic() + PATIENCE
            while is_open(self.port) and time.monotonic() < end:
                time.sleep(0.02)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# MARK: origins

NGINX = """
  limit_req_zone $binary_remote_addr zone=counted:1m rate={counted}r/s;
  limit_conn_zone $binary_remote_addr zone=few:1m;
  log_format status "$status $uri";
  server {{
    access_log {log} status;
    listen 127.0.0.1:{port};
    listen 127.0.0.1:{secure} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    types {{ text/plain txt; text/html html; application/gzip gz; }}
    gzip on;
    gzip_types *;
    location /plain/ {{ alias {site}/; }}
    location /weak/ {{ alias {site}/; etag off; add_header ETag 'W/"$upstream_http_x$sent_http_last_modified"'; }}
    location /date/ {{ alias {site}/; etag off; }}
    location /none/ {{ alias {site}/; etag off; add_header Last-Modified ""; }}
    location /noranges/ {{ alias {site}/; max_ranges 0; }}
    location /moved/ {{ rewrite ^/moved/(.*) /plain/$1 redirect; absolute_redirect off; }}
    location /app/ {{ proxy_pass http://127.0.0.1:{app}; proxy_http_version 1.1; }}
    location /counted/ {{ alias {site}/; limit_req zone=counted burst={burst} nodelay; }}
    location /few/ {{ alias {site}/; limit_conn few 2; limit_conn_status 429; limit_rate 400k; }}
  }}
"""


class NginxServer(Server):
    """nginx, behind the proxies; the app is behind it."""

    nginx: Nginx | None = None

    def start(self) -> None:
        if self.nginx is None:
            self.state.mkdir()
            self.port, self.place.secure_files = free_port(), free_port()
            self.place.files = self.port
            self.nginx = Nginx(self.state, "master_process off;")
        elif self.nginx.process.poll() is None:
            return
        place = self.place
        directives = NGINX.format(
            port=self.port, secure=place.secure_files, certificate=place.certificate, key=place.key, site=place.site, app=place.app,
            counted=COUNTED, burst=BURST, log=place.log,
        )
        if not self.nginx.start(directives):
            raise SystemExit("nginx: " + self.nginx.said())

    def stop(self) -> None:
        self.nginx.stop()


@dataclass
class SecureNginx(Server):
    """The same with TLS; it offers HTTP/2, too."""

    of: NginxServer | None = None

    def start(self) -> None:
        self.of.start()
        self.port = self.place.secure_files

    def stop(self) -> None:
        self.of.stop()


class App(Server):
    def command(self) -> list[object]:
        self.place.app = self.port
        return ["python3", "-B", HERE / "origin.py", self.place.site, self.port]


class Python(Server):
    """Python's standard library: HTTP/1.0, no ranges, no ETag."""

    def command(self) -> list[object]:
        return ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", self.place.work / "below", self.port]

    def prepare(self) -> None:
        (self.place.work / "below").mkdir()
        (self.place.work / "below" / "plain").symlink_to(self.place.site)


class Node(Server):
    def command(self) -> list[object]:
        tls = [self.place.key, self.place.certificate] if self.is_secure else []
        return ["node", HERE / "origin.js", self.place.site, self.port, *tls]


class Go(Server):
    def prepare(self) -> None:
        program = self.place.work / "origin"
        if not program.exists():
            environment = os.environ | {"GOCACHE": str(self.place.work / "go-cache"), "GO111MODULE": "off", "HOME": str(self.state)}
            subprocess.run(["go", "build", "-o", program, HERE / "origin.go"], check=True, env=environment)

    def command(self) -> list[object]:
        tls = [self.place.key, self.place.certificate] if self.is_secure else []
        return [self.place.work / "origin", self.place.site, self.port, *tls]


APACHE = """
ServerRoot /usr/lib/apache2
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {state}/pid
ErrorLog {state}/error.log
DefaultRuntimeDir {state}
Mutex file:{state}
{user}
{modules}
StartServers 1
ThreadsPerChild 25
MaxRequestWorkers 25
TypesConfig /etc/mime.types
DocumentRoot {site}
<Directory />
  Require all granted
  Options None
</Directory>
{tls}
AddOutputFilterByType DEFLATE text/plain text/html application/json image/svg+xml
Alias /plain {site}
Alias /weak {site}
Alias /date {site}
Alias /none {site}
Alias /noranges {site}
Alias /forced {site}
Alias /coded {site}
RedirectMatch 302 ^/moved/(.*) /plain/$1
<Location /weak>
  Header edit ETag ^ W/
</Location>
<Location /date>
  Header unset ETag
</Location>
<Location /none>
  Header unset ETag
  Header unset Last-Modified
</Location>
<Location /noranges>
  MaxRanges none
</Location>
<Location /forced>
  SetEnv force-gzip 1
  SetOutputFilter DEFLATE
</Location>
<Location /coded>
  AddEncoding gzip .gz
</Location>
ProxyPass /app http://127.0.0.1:{app}/app
"""
APACHE_MODULES = ["mpm_event", "authz_core", "alias", "headers", "mime", "filter", "deflate", "env", "proxy", "proxy_http"]


class Apache(Server):
    def prepare(self) -> None:
        place = self.place
        extra = ["ssl", "http2"] if self.is_secure else []
        modules = "\n".join(f"LoadModule {name}_module modules/mod_{name}.so" for name in APACHE_MODULES + extra)
        tls = f"SSLEngine on\nSSLCertificateFile {place.certificate}\nSSLCertificateKeyFile {place.key}" if extra else ""
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        (self.state / "conf").write_text(
            APACHE.format(port=self.port, state=self.state, user=user, modules=modules, site=place.site, tls=tls, app=place.app)
        )

    def command(self) -> list[object]:
        return ["apache2", "-D", "FOREGROUND", "-f", self.state / "conf"]


CADDY = """
{{
  admin off
  auto_https off
  storage file_system {state}/storage
}}
{scheme}://127.0.0.1:{port} {{
  {tls}
  encode gzip
  root * {site}
  handle_path /plain/* {{
    file_server
  }}
  handle_path /weak/* {{
    header ETag ^ W/
    file_server
  }}
  handle_path /date/* {{
    header -ETag
    file_server
  }}
  handle_path /none/* {{
    header -ETag
    header -Last-Modified
    file_server
  }}
  handle_path /noranges/* {{
    request_header -Range
    file_server
  }}
  handle_path /moved/* {{
    redir * /plain{{path}} 302
  }}
  handle /app/* {{
    reverse_proxy 127.0.0.1:{app}
  }}
}}
"""


class Caddy(Server):
    def prepare(self) -> None:
        place = self.place
        scheme, tls = ("https", f"tls {place.certificate} {place.key}") if self.is_secure else ("http", "")
        (self.state / "Caddyfile").write_text(
            CADDY.format(state=self.state, scheme=scheme, port=self.port, tls=tls, site=place.site, app=place.app)
        )

    def command(self) -> list[object]:
        return ["caddy", "run", "--adapter", "caddyfile", "--config", self.state / "Caddyfile"]


# MARK: before an origin

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend front
  bind 127.0.0.1:{port} {tls}
  use_backend app if {{ path_beg /app/ }}
  default_backend files
backend files
  server files 127.0.0.1:{files}
backend app
  server app 127.0.0.1:{app}
"""


class HAProxy(Server):
    def prepare(self) -> None:
        place = self.place
        tls = ""
        if self.is_secure:
            # HAProxy reads one file, and the key beside it.
            pem = self.state / "server.pem"
            pem.write_bytes(place.certificate.read_bytes() + place.key.read_bytes())
            tls = f"ssl crt {pem}"
        (self.state / "conf").write_text(HAPROXY.format(port=self.port, tls=tls, files=place.files, app=place.app))

    def command(self) -> list[object]:
        return ["haproxy", "-db", "-f", self.state / "conf"]


VARNISH = """
vcl 4.1;
backend files {{ .host = "127.0.0.1"; .port = "{files}"; }}
backend app {{ .host = "127.0.0.1"; .port = "{app}"; }}
sub vcl_recv {{
  if (req.url ~ "^/app/") {{ set req.backend_hint = app; }} else {{ set req.backend_hint = files; }}
}}
"""


class Varnish(Server):
    """A cache: it keeps a response for two seconds, and serves it for two more while it asks again."""

    def prepare(self) -> None:
        (self.state / "vcl").write_text(VARNISH.format(files=self.place.files, app=self.place.app))
        self.runs = 0

    def command(self) -> list[object]:
        self.runs += 1
        limits = ["-t", "2", "-p", "default_grace=2", "-s", "malloc,64m", "-j", "none"]
        return ["varnishd", "-F", "-n", self.state / f"run{self.runs}", "-a", f"127.0.0.1:{self.port}", "-f", self.state / "vcl", *limits]


class Forward(Server):
    """A proxy as in `http_proxy`; with a login if its name says so. The URL is nginx': plain or, with CONNECT, with
    TLS."""

    @property
    def has_credentials(self) -> bool:
        return "login" in self.name

    def start(self) -> None:
        super().start()
        self.environment = self.names(CREDENTIALS + "@" if self.has_credentials else "")

    def names(self, login: str) -> dict[str, str]:
        address = f"http://{login}127.0.0.1:{self.port}"
        return {"http_proxy": address, "https_proxy": address}

    def url(self, path: str) -> str:
        if self.is_secure:
            return f"https://127.0.0.1:{self.place.secure_files}/{path}"
        return f"http://127.0.0.1:{self.place.files}/{path}"


SQUID = """
http_port 127.0.0.1:{port}
pid_filename {state}/pid
cache_log {state}/cache.log
access_log stdio:{state}/access.log
coredump_dir {state}
cache_effective_user {user}
shutdown_lifetime 0 seconds
cache_mem 64 MB
maximum_object_size_in_memory 16 MB
# Goes on by itself when the client has gone: a cache of what nobody waits for.
quick_abort_min 64 MB
refresh_pattern . 0 20% 1
{login}
http_access {allowed} all
"""
SQUID_LOGIN = """
auth_param basic program /usr/lib/squid/basic_ncsa_auth {state}/users
acl known proxy_auth REQUIRED
http_access allow known
"""


class Squid(Forward):
    def prepare(self) -> None:
        # basic_ncsa_auth accepts the hashes of crypt(3).
        name, password = CREDENTIALS.split(":")
        hashed = subprocess.run(["openssl", "passwd", "-apr1", password], check=True, capture_output=True, text=True).stdout
        (self.state / "users").write_text(f"{name}:{hashed}")
        login, allowed = (SQUID_LOGIN.format(state=self.state), "deny") if self.has_credentials else ("", "allow")
        user = "proxy" if os.geteuid() == 0 else os.environ.get("USER", "nobody")
        (self.state / "conf").write_text(SQUID.format(port=self.port, state=self.state, user=user, login=login, allowed=allowed))

    def command(self) -> list[object]:
        (self.state / "pid").unlink(missing_ok=True)
        return ["squid", "-N", "-f", self.state / "conf"]


TINYPROXY = """
Port {port}
Listen 127.0.0.1
Timeout 30
PidFile "{state}/pid"
MaxClients 50
{login}
"""


class Tinyproxy(Forward):
    def prepare(self) -> None:
        login = "BasicAuth " + CREDENTIALS.replace(":", " ") if self.has_credentials else ""
        (self.state / "conf").write_text(TINYPROXY.format(port=self.port, state=self.state, login=login))

    def command(self) -> list[object]:
        return ["tinyproxy", "-d", "-c", self.state / "conf"]


def servers(place: Place) -> tuple[list[Server], list[Server]]:
    """The servers that always run, behind the others; and the servers to test."""
    app, nginx = App("app", place), NginxServer("nginx", place, ("nginx",), ALL | LIMITS)
    coded = FILES | {"app", "forced", "coded"}
    tried = [
        nginx,
        SecureNginx("nginx tls", place, ("nginx",), ALL | LIMITS, is_secure=True, of=nginx),
        Apache("apache", place, ("apache2",), coded),
        Apache("apache tls", place, ("apache2",), coded, is_secure=True),
        Caddy("caddy", place, ("caddy",)),
        Caddy("caddy tls", place, ("caddy",), is_secure=True),
        Node("node", place, ("node",), ALL | {"forced"}),
        Node("node tls", place, ("node",), ALL | {"forced"}, is_secure=True),
        Node("node tls", place, ("node",), ALL | {"forced"}, is_secure=True),
        Go("go", place, ("go",), ALL | {"tagged"}),
        Go("go tls", place, ("go",), ALL | {"tagged"}, is_secure=True),
        Python("python", place, (), frozenset({"plain"}), resumes=False),
        HAProxy("haproxy", place, ("haproxy",)),
        HAProxy("haproxy tls", place, ("haproxy",), is_secure=True),
        # Varnish asks nginx for gzip, whose ETag is then weak, and decompresses it for clients that do not accept it.
        Varnish("varnish", place, ("varnishd",), resumes=False),
        Squid("squid", place, ("squid",), ALL | LIMITS),
        Squid("squid login", place, ("squid",)),
        Squid("squid connect", place, ("squid",), ALL | LIMITS, is_secure=True),
        Squid("squid connect login", place, ("squid",), is_secure=True),
        Tinyproxy("tinyproxy", place, ("tinyproxy",)),
        Tinyproxy("tinyproxy login", place, ("tinyproxy",)),
        Tinyproxy("tinyproxy connect", place, ("tinyproxy",), is_secure=True),
    ]
    return [app, nginx], tried
