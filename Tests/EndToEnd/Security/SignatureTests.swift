import Glibc
import TestSupport
import Testing

/// Signatures, made by the programs that people sign with.
@Suite(.enabled("needs programs that sign") { try await Need.signing.isMet() })
struct SignatureTests {
  private let spool: TemporarySpool
  /// The server has the files in it.
  private let directory: TemporaryDirectory
  private let server: ScriptedServer

  init() throws {
    (spool, directory) = (try TemporarySpool(), try TemporaryDirectory())
    server = try ScriptedServer { [path = directory.path] request, reply in
      guard let bytes = try? readFile("\(path)\(request.target)") else {
        return try reply.respond("404 Not Found", body: [])
      }
      let tag = "\"\(hex8(independentCRC32(bytes)))\""
      if request.value("If-None-Match") == tag { return try reply.head("304 Not Modified", ["ETag: \(tag)"]) }
      try reply.respond("200 OK", ["ETag: \(tag)"], body: bytes)
    }
    try #require(mkdir(spool.path("keys"), 0o700) == 0)
  }

  /// Runs lines of a shell in the server's directory. `$keys` is that of the spool, `key NAME …` makes a key of
  /// OpenPGP and exports it, and `sign NAME …` signs with it.
  private func shell(_ lines: String) async throws {
    let functions = """
      trap 'gpgconf --kill gpg-agent' EXIT
      mkdir -p -m 700 "$GNUPGHOME"; umask 022
      key() {
        gpg -q --batch --passphrase '' "${@:3}" --quick-gen-key "$1 <$1@test>" ed25519 sign "$2"
        gpg -q --export "$1@test" >"$keys/$1.gpg"
      }
      sign() { gpg -q --batch --yes -u "$1@test" "${@:2}"; }

      """
    let variables = ["GNUPGHOME": "\(directory.path)/gnupg", "keys": spool.path("keys")]
    let result = try await run(
      ["/bin/bash", "-euc", functions + lines], environment: testEnvironment.merging(variables) { $1 },
      directory: directory.path)
    try #require(result.status == .exited(0), "\(result)")
  }

  private func job(_ file: String, signedBy signature: String) -> String {
    "url: \(server.url("/\(file)"))\nsignature: \(server.url("/\(signature)"))\n"
  }

  private func code(_ place: String) throws -> String? { try spool.lastFailure(place)["code"] }

  private static let forms = [
    "gpg": "key a never; sign a -o sig --detach-sign good",
    "asc": "key a never; sign a -o sig --armor --detach-sign good",
    // By a key that is not known, too.
    "several": "key a never; key b never; rm $keys/b.gpg; sign a -u b@test -o sig --detach-sign good",
    "minisign": "minisign -G -W -p $keys/a.pub -s sec >&2; minisign -S -s sec -m good -x sig",
    "signify": "signify-openbsd -G -n -p $keys/a.pub -s a.sec; signify-openbsd -S -s a.sec -m good -x sig",
    "ssh": """
    ssh-keygen -q -t ed25519 -N '' -f k; echo "a@test $(cat k.pub)" >$keys/allowed_signers
    ssh-keygen -q -Y sign -f k -n file good; mv good.sig sig
    """,
  ]
  private static let otherKeys = """
    rm $keys/*; key c never
    minisign -G -W -p $keys/c.pub -s c.sec >&2; signify-openbsd -G -n -p $keys/d.pub -s d.sec
    ssh-keygen -q -t ed25519 -N '' -f k2; echo "a@test $(cat k2.pub)" >$keys/allowed_signers
    """

  @Test(arguments: forms.keys.sorted())
  func `a file is published only if a key of the spool has signed it`(form: String) async throws {
    try await shell("echo right >good; echo wrong >bad; \(Self.forms[form] ?? "false")")
    for name in ["good", "bad"] { try spool.drop(name, job(name, signedBy: "sig")) }
    var result = try await spoolrun("-v", "--once", spool.root).exits(75, saying: "signed")
    #expect(spool.payloads == ["good"] && spool.places(of: "good") == ["done/good"])
    #expect(try code("partial/bad") == "bad-signature")
    #expect(try readFile(spool.path("failed/bad.part")) == Array("wrong\n".utf8), "set aside, and not resumed")
    try await shell(Self.otherKeys)
    try spool.drop("again", job("good", signedBy: "sig") + "output: again\n")
    result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == ["good"] && spool.names("tmp") == [], "\(result)")
    #expect(try code("failed/again") == "unknown-key")
    // The key comes later: nothing is fetched again but the signature.
    #expect(spool.length("partial/again.part") == 6)
  }

  /// gpgv(1) ends with status 0 for the first two.
  @Test(arguments: [
    (
      "expired-key",
      """
      key a 30d --faked-system-time 20250101T000000
      sign a --faked-system-time 20250102T000000 -o sig --detach-sign good
      """
    ),
    (
      "revoked-key",
      """
      key a never; sign a -o sig --detach-sign good
      sed 's/^:---/---/' $GNUPGHOME/openpgp-revocs.d/*.rev | gpg -q --import; gpg -q --export >$keys/a.gpg
      """
    ),
    ("expired-key", "\(forms["ssh"]!); sed -i 's/ / valid-before=\"20240101\" /' $keys/allowed_signers"),
    ("revoked-key", "\(forms["ssh"]!); ssh-keygen -q -k -f $keys/revoked_keys k.pub"),
    ("bad-response", "key a never; echo '<html>' >sig"),
    ("bad-signature", "key a never; sign a -o sig --sign good"),
    ("http-404", "key a never"),
    ("unknown-key", "key a never; sign a -o sig --detach-sign good; chmod g+w $keys/a.gpg"),
    ("unknown-key", "key a never; sign a -o sig --detach-sign good; chmod o+w $keys"),
    ("unknown-key", "key a never; sign a -o sig --detach-sign good; mv $keys/a.gpg .; ln -s $PWD/a.gpg $keys/a.gpg"),
    ("unknown-key", "key a never; sign a -o sig --detach-sign good; mv $keys/a.gpg $keys/a.asc"),
    ("unknown-key", "key a never; sign a -o sig --detach-sign good; rm -r $keys"),
  ])
  func `what does not vouch for the file has its code`(code: String, lines: String) async throws {
    try await shell("echo right >good; \(lines)")
    try spool.drop("a", job("good", signedBy: "sig"))
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == [], "\(result)")
    // What is no signature costs no download.
    #expect(!["http-404", "bad-response"].contains(code) || server.requests(for: "/good").isEmpty)
    let place = try #require(spool.places(of: "a").first)
    #expect(try self.code(place) == code, "\(result)")
  }

  /// Sends the files as odd servers do: with `/packed` a gzipped one in the place of each, and with `/named` each as it
  /// is, but with the coding that Apache takes from a `.gz` anywhere in a name; with `/open` without a length; with
  /// `/part` only a part.
  private func oddServer() throws -> ScriptedServer {
    try ScriptedServer { [path = directory.path] request, reply in
      let name = request.target.split(separator: "/").last ?? ""
      let plain = try? readFile("\(path)/\(name)")
      let isPacked = request.target.hasPrefix("/packed")
      guard let bytes = isPacked ? try? readFile("\(path)/\(name).gz") : plain else {
        return try reply.respond("404 Not Found", body: [])
      }
      if request.target.hasPrefix("/part") {
        return try reply.respond("206 Partial Content", ["Content-Range: bytes 0-0/9"], body: bytes.prefix(1))
      }
      let coding = isPacked || name.contains(".gz") ? ["Content-Encoding: x-gzip"] : []
      if !request.target.hasPrefix("/open") { return try reply.respond("200 OK", coding, body: bytes) }
      try reply.head("200 OK", ["Connection: close"])
      try reply.send(bytes)
      try reply.finish()
    }
  }

  @Test(arguments: ["/packed/sig", "/open/sig", "/named/good.gz.sig"])
  func `a signature may come packed, misnamed and without a length`(target: String) async throws {
    try await shell("echo right >good; \(Self.forms["gpg"]!); gzip -k sig; cp sig good.gz.sig")
    let odd = try oddServer()
    try spool.drop("good", "url: \(server.url("/good"))\nsignature: \(odd.url(target))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == ["good"], "\(result)")
  }

  @Test func `what is wrong with a signature is not said of a list`() async throws {
    try await shell("key a never; echo right >good; echo x >sig; head -c 1100000 /dev/zero >long")
    let odd = try oddServer()
    for (name, target) in [("part", "/part/sig"), ("long", "/named/long")] {
      try spool.drop(name, "url: \(server.url("/good"))\noutput: \(name)\nsignature: \(odd.url(target))\n")
    }
    let result = try await spoolrun("--once", spool.root)
    for name in ["part", "long"] {
      let failure = try spool.lastFailure("partial/\(name)")
      #expect(failure["code"] == "bad-response" && failure["reason"]?.contains("the signature") == true, "\(result)")
    }
    #expect(server.requests(for: "/good").isEmpty)
  }

  @Test func `a file that came before its new signature is not fetched again`() async throws {
    let sign = "ssh-keygen -q -Y sign -f k -n file good; mv good.sig sig"
    try await shell("echo old >good; \(Self.forms["ssh"]!); mv sig before; echo right >good; \(sign)")
    let late = try ScriptedServer { [path = directory.path] request, reply in
      let isEarly = request.target == "/sig" && request.nth == 1
      try reply.respond("200 OK", ["ETag: \"1\""], body: readFile("\(path)\(isEarly ? "/before" : request.target)"))
    }
    try spool.drop("a", "url: \(late.url("/good"))\nsignature: \(late.url("/sig"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.payloads == ["good"], "\(result)")
    #expect(try late.requests(for: "/good").count == 1 && verified("done/a")?["signed"] != nil)
  }

  @Test func `without the program nothing is published`() async throws {
    try await shell("echo right >good; \(Self.forms["gpg"]!)")
    try spool.drop("a", job("good", signedBy: "sig"))
    let result = try await spoolrun("--once", spool.root, environment: ["PATH": directory.path])
    #expect(try spool.payloads == [] && code("partial/a") == "no-verifier", "\(result)")
    try spool.makeDue("a")
    #expect(try await spoolrun("--once", spool.root).status == .exited(0) && spool.payloads == ["good"])
  }

  /// Its digest may be anybody's.
  @Test func `a file that is there already is no signed one`() async throws {
    try await shell("echo right >good; \(Self.forms["gpg"]!)")
    try spool.write("files/good", "right\n")
    let digest = "crc32: \(hex8(independentCRC32(Array("right\n".utf8))))\n"
    try spool.drop("a", job("good", signedBy: "sig") + digest)
    try await spool.once(exits: 1)
    #expect(try code("failed/a") == "output-exists")
  }

  private func addSignature(to place: String) throws {
    let text = try readFile(spool.path(place))
    try spool.write(place, Array("signature: \(server.url("/sig"))\n".utf8) + text)
  }

  private func verified(_ place: String) throws -> JobLine? { try spool.lines(place).last { $0.key == "verified" } }

  /// A signature of SSH does not say when it was made.
  @Test(arguments: ["gpg", "ssh"])
  func `a signature for a job that was done is checked, once`(form: String) async throws {
    try await shell("echo right >good; echo wrong >bad; \(Self.forms[form]!)")
    for name in ["good", "bad"] { try spool.drop(name, "url: \(server.url("/\(name)"))\n") }
    try await spool.once(exits: 0)
    for name in ["good", "bad"] {
      try addSignature(to: "done/\(name)")
      try spool.move("done/\(name)", "new/\(name)")
    }
    // The attempt that has fetched it again ends without a verdict.
    try spool.install("verify", "kill -9 $$")
    var result = try await spoolrun("--once", spool.root)
    #expect(try code("partial/good") == "hook", "\(result)")
    #expect(try code("partial/bad") == "bad-signature" && spool.payload("bad") == Array("wrong\n".utf8))
    // It is due again in a few seconds, and its requests would be counted below.
    try #require(unlink(spool.path("partial/bad")) == 0)
    try #require(unlink(spool.path("hooks/verify")) == 0)
    try spool.makeDue("good")
    result = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "good") == ["done/good"], "\(result)")
    #expect(try (verified("done/good")?["signed"] == "yes") == (form == "ssh"))
    let count = server.requests.count
    try spool.move("done/good", "new/good")
    result = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "good") == ["done/good"] && server.requests.count == count, "\(result)")
    #expect(try verified("done/good")?["signed"] != nil)
    // What was signed is no more there, whatever the job declares now.
    let changed = Array("false\n".utf8)
    try spool.write("files/good", changed)
    let digest = Array("crc32: \(hex8(independentCRC32(changed)))\n".utf8)
    try spool.write("new/good", digest + readFile(spool.path("done/good")))
    try #require(unlink(spool.path("done/good")) == 0)
    result = try await spoolrun("--once", spool.root)
    #expect(try code("failed/good") == "output-exists", "\(result)")
  }

  @Test func `a signature for a job whose file is published is checked before it is done`() async throws {
    try await shell("echo right >good; echo wrong >bad; \(Self.forms["ssh"]!)")
    try spool.install("deliver", "exit 3")
    for name in ["good", "bad"] { try spool.drop(name, "url: \(server.url("/\(name)"))\n") }
    #expect(try await spoolrun("--once", spool.root).status == .exited(75) && spool.payloads == ["bad", "good"])
    try spool.install("deliver", "exit 0")
    for name in ["good", "bad"] {
      try addSignature(to: "partial/\(name)")
      try spool.makeDue(name)
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == ["good"] && spool.places(of: "good") == ["done/good"], "\(result)")
    #expect(try code("partial/bad") == "bad-signature" && server.requests(for: "/good").count == 1)
  }

  @Test func `the same file of another job is signed, too`() async throws {
    try await shell("echo right >good; \(Self.forms["gpg"]!)")
    try spool.install("verify", "cp \"$SPOOLRUN_PAYLOAD\" '\(spool.path("files/good"))'")
    try spool.drop("a", job("good", signedBy: "sig"))
    let result = try await spoolrun("--once", spool.root)
    #expect(try spool.lines("done/a").last?["existing"] == "yes", "\(result)")
    #expect(try verified("done/a")?["signed"] != nil)
  }
}

/// Lists that are signed, in the shapes that distributions have.
extension SignatureTests {
  /// Debian's: a list beside its signature.
  private func signList(_ options: String = "") async throws {
    try await shell(
      "sha256sum one two >SHA256SUMS; sign a \(options) -o SHA256SUMS.sign --armor --detach-sign SHA256SUMS")
  }

  private func add(_ list: String, signature: String) async throws -> CommandResult {
    try await spoolrun(
      "add", "--spool", spool.root, "--from", "\(directory.path)/\(list)", "--base", server.url("/"), "--signature",
      signature == "inline" ? signature : "\(directory.path)/\(signature)")
  }

  @Test func `where a signature is required, only what a signed list names is published`() async throws {
    try spool.write("defaults", "signed: required\n")
    try await shell("echo 1 >one; echo 2 >two; echo 3 >three; key a never")
    try await signList()
    var result = try await add("SHA256SUMS", signature: "SHA256SUMS.sign")
    #expect(result.status == .exited(0) && result.output == "2 added\n", "\(result)")
    let digest = String(repeating: "a", count: 64)
    try spool.drop("three", "url: \(server.url("/three"))\nsha256: \(digest)\n")
    result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(1) && spool.payloads == ["one", "two"], "\(result)")
    #expect(try code("failed/three") == "unsigned")
    // What the list says still has to be true.
    try await shell("echo 4 >>one")
    try await spoolrun("add", "--spool", spool.root, server.url("/one"), "-o", "x").exits(0)
    try spool.order("watch", "url: \(server.url("/SHA256SUMS"))\nevery: 1h\n")
    result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == ["one", "two"], "\(result)")
    #expect(try code("standing/watch") == "unsigned" && code("failed/x") == "unsigned")
  }

  @Test func `a gzipped list is signed as it is`() async throws {
    try await shell(
      "echo 1 >one; key a never; sha256sum one | gzip >sums.gz; sign a -o sums.sign --detach-sign sums.gz")
    let result = try await add("sums.gz", signature: "sums.sign")
    #expect(result.output == "1 added\n", "\(result)")
  }

  @Test func `a list that somebody has changed is not added`() async throws {
    try await shell("echo 1 >one; echo 2 >two; key a never")
    try await signList()
    try await shell("sed -i s/two/six/ SHA256SUMS")
    try await add("SHA256SUMS", signature: "SHA256SUMS.sign").exits(1, saying: "bad-signature")
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
  }

  /// Fedora's: what is before and behind the frame is anybody's.
  @Test func `of a list with its signature inline, what is signed counts`() async throws {
    try await shell(
      """
      echo 1 >one; echo 2 >two; key a never
      sha256sum --tag one >list; sign a -o CHECKSUM --clearsign list
      (cat CHECKSUM; sha256sum --tag two) >behind; (sha256sum --tag two; cat CHECKSUM) >before
      sed 's/one/two/' CHECKSUM >changed; cat CHECKSUM CHECKSUM >twice
      """)
    for (list, status) in [("before", 1), ("changed", 1), ("twice", 1), ("list", 1), ("CHECKSUM", 0), ("behind", 0)] {
      let result = try await add(list, signature: "inline")
      #expect(result.status == .exited(Int32(status)), "\(list): \(result)")
      #expect(spool.names("new") == (status == 0 ? ["one"] : []), "\(list)")
    }
    let text = try spool.text("new/one")
    #expect(text.contains(/^# signed by [0-9A-F]{40}\n/), "\(text)")
  }

  /// The signature is of the list itself; of one that is a gzipped file, of that.
  @Test(arguments: [("/packed/SHA256SUMS", "SHA256SUMS"), ("/named/SHA256SUMS.gz", "SHA256SUMS.gz")])
  func `the list of an order may come packed`(target: String, signed: String) async throws {
    try await shell(
      """
      echo 1 >one; gzip -k one; key a never; sha256sum one | head -c -1 >SHA256SUMS; gzip -k SHA256SUMS
      sign a -o sig --detach-sign \(signed); gzip -k sig
      """)
    let odd = try oddServer()
    try spool.order(
      "list", "url: \(odd.url(target))\nsignature: \(odd.url("/packed/sig"))\nevery: 1h\nfirst: all\nencoded: decode\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.payloads == ["one"], "\(result)")
  }

  @Test func `an order takes a list with the signature that fits, and none that is older`() async throws {
    try spool.write("defaults", "signed: required\n")
    try await shell("echo 1 >one; echo 2 >two; key a never --faked-system-time 20250101T000000")
    try await signList("--faked-system-time 20250301T000000")
    try await shell("cp SHA256SUMS.sign before")
    let order = "url: \(server.url("/SHA256SUMS"))\nsignature: \(server.url("/SHA256SUMS.sign"))\n"
    try spool.order("list", order + "every: 1h\nfirst: all\noverwrite: yes\n")
    var result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.payloads == ["one", "two"], "\(result)")
    let checked = try spool.lines("standing/list").last { $0.key == "checked" }
    // The clock of gpg goes on from there.
    #expect(checked?["signed"]?.hasPrefix("2025-03-01T00:0") == true)
    // A new list, and not yet its signature.
    try await shell("echo three >one")
    try await signList("--faked-system-time 20250401T000000")
    try await shell("mv SHA256SUMS.sign after; cp before SHA256SUMS.sign")
    try await spoolrun("retry", "--spool", spool.root, "list").exits(0)
    result = try await spoolrun("--once", spool.root)
    #expect(try code("standing/list") == "bad-signature", "\(result)")
    try await shell("cp after SHA256SUMS.sign")
    try await spoolrun("retry", "--spool", spool.root, "list").exits(0)
    result = try await spoolrun("--once", spool.root)
    #expect(try spool.payload("one") == Array("three\n".utf8), "\(result)")
    // An old one again, which is signed as well.
    try await shell("echo fifth >one")
    try await signList("--faked-system-time 20250201T000000")
    try await spoolrun("retry", "--spool", spool.root, "list").exits(0)
    result = try await spoolrun("--once", spool.root)
    #expect(try code("standing/list") == "rollback" && spool.payload("one") == Array("three\n".utf8), "\(result)")
    #expect(spool.names("tmp") == [])
  }

  @Test func `a file that is kept current is not taken back to an older one`() async throws {
    try await shell("key a never --faked-system-time 20250101T000000")
    func publish(_ text: String, _ day: String) async throws -> CommandResult {
      try await shell(
        "echo \(text) >list; sign a --faked-system-time \(day)T000000 -o list.asc --armor --detach-sign list")
      if spool.names("standing") == [] {
        let text = "url: \(server.url("/list"))\nsignature: \(server.url("/list.asc"))\nevery: 1h\nentries: file\n"
        try spool.order("geo", text)
      } else {
        try await spoolrun("retry", "--spool", spool.root, "geo").exits(0)
      }
      return try await spoolrun("--once", spool.root)
    }
    var result = try await publish("one", "20250301")
    #expect(try spool.payload("list") == Array("one\n".utf8), "\(result)")
    result = try await publish("three", "20250401")
    #expect(try spool.payload("list") == Array("three\n".utf8), "\(result)")
    // Older than the last one, and signed as well; what receipts say may be gone.
    for round in 1...2 {
      result = try await publish(round == 1 ? "fifth" : "seventh", "20250315")
      #expect(try spool.payload("list") == Array("three\n".utf8), "\(result)")
      let job = try #require(spool.names("partial").first { !$0.hasSuffix(".part") }, "\(result)")
      #expect(try code("partial/\(job)") == "rollback")
      try await spoolrun("cancel", "--spool", spool.root, job).exits(0)
      for name in spool.names("done") { unlink(spool.path("done/\(name)")) }
    }
    result = try await publish("ninth", "20250501")
    #expect(try spool.payload("list") == Array("ninth\n".utf8), "\(result)")
  }

  /// Who may only drop could write that line as well.
  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `that a list was signed is not believed of another user`() async throws {
    try spool.write("defaults", "signed: required\n")
    try await shell("echo 1 >one; sha256sum one | cut -c 1-64 >digest")
    let digest = try readText("\(directory.path)/digest")
    for (name, start) in [("own", "#"), ("forged", "#"), ("marked", "\u{FEFF}#"), ("blank", " #")] {
      let path = spool.path("new/\(name)")
      let place = "url: \(server.url("/one"))\noutput: \(name)\nsha256: \(digest)"
      try writeFile(path, "\(start) signed by me\n\(place)")
      if name != "own" { try #require(chown(path, 61_002, 0) == 0 && chmod(path, 0o644) == 0) }
      try setModificationTime(path, secondsFromNow: -60)
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.payloads == ["own"], "\(result)")
    for name in ["forged", "marked", "blank"] { #expect(try code("failed/\(name)") == "unsigned") }
  }
}
