import Glibc
import TestSupport
import Testing

@testable import spoolrun

/// What somebody types who knows curl or wget.
@Suite struct OtherProgramsTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws { (home, server) = (try Self.makeHome(), try simpleServer()) }

  @Test(arguments: [
    ("-c", "goes on"), ("--continue", "goes on"), ("-C-", "goes on"), ("-LO", "redirects"), ("-O", "names the file"),
    ("-qO-", "before all of it is verified"), ("--output-document=-", "before all of it is verified"),
    ("--password=x", "-u NAME"),
    ("-b", "spoolrun add"), ("--input-file=x", "--from"), ("-P", "-o DIR/"), ("-x", "--proxy"), ("-k", "--cacert"),
    ("-nc", "never fetched again"), ("-N", "--overwrite"), ("--dir=x", "-o DIR/"), ("-d", "-o DIR/"),
    ("-j4", "leave this out"), ("--checksum=x", "--sha256"),
    ("--netrc-file=x", "netrc: FILE"), ("--ask-password", "-u NAME"), ("--load-cookies=x", "cookies: FILE"),
    ("-R", "--times"), ("--max-speed=1M", "--limit-rate"), ("-I", "curl(1)"), ("-X", "curl(1)"),
  ])
  func `an option of theirs is answered in one line, and nothing is done`(option: String, word: String) async throws {
    let result = try await get(option, server.url("/a"))
    #expect(result.exitStatus == 64 && result.output == "", "\(result)")
    #expect(result.errors.hasPrefix("spoolrun: -") && result.errors.contains(word), "\(result)")
    #expect(result.errors.split(separator: "\n").count == 1 && server.requests.isEmpty, "\(result)")
    #expect(names(in: here) == [])
  }

  @Test func `what they share is taken`() async throws {
    let result = try await get(
      "-q", "--tries", "3", "-H", "X-Key: 1", "--limit-rate", "9M", "-o", "b", "--spool", spool, server.url("/a"))
    #expect(result.status == .exited(0) && result.output + result.errors == "", "\(result)")
    #expect(server.requests.first?.value("X-Key") == "1" && names(in: here) == ["b"])
    let job = try #require(names(in: "\(spool)/done").first)
    #expect(try readText("\(spool)/done/\(job)").contains("attempts: 3\n"))
  }

  @Test(arguments: [["-u", "us3r:s3c/r@t"], ["--user=us3r:s3c/r@t"], ["--netrc"]])
  func `a login goes to the server, and is shown nowhere`(options: [String]) async throws {
    let server = try ScriptedServer { request, reply in
      guard request.value("Authorization") != nil else {
        return try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: Array("no\n".utf8))
      }
      try reply.respond("200 OK", body: Array("payload\n".utf8))
    }
    try writeFile("\(home.path)/.netrc", "machine 127.0.0.1 login us3r password s3c/r@t\n")
    #expect(chmod("\(home.path)/.netrc", 0o600) == 0)
    let result = try await start(options + ["-v", server.url("/a")]).result()
    #expect(result.status == .exited(0) && !result.errors.contains("s3c"), "\(result)")
    #expect(server.requests.last?.value("Authorization") == "Basic dXMzcjpzM2MvckB0")
  }

  @Test func `another password of a user does not make it another file`() async throws {
    try await get("-u", "us3r:wr0ng", server.url("/a")).exits(0)
    try await get("--user=us3r:r1ght", server.url("/a")).exits(0, saying: "is there already")
    #expect(server.requests.count == 1)
    let other = try await get("--user=other:r1ght", server.url("/a"))
    #expect(other.status == .exited(1), "this user may have another file there: \(other)")
  }

  @Test func `a limit of the rate is for all files together`() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("200 OK", body: [UInt8](repeating: 1, count: 400_000))
    }
    let began = ContinuousClock.now
    let result = try await start(["--limit-rate", "500k"] + (0..<5).map { server.url("/\($0)") }).result()
    #expect(result.status == .exited(0) && ContinuousClock.now - began > .seconds(2), "\(result)")
    try await get("--limit-rate", "fast", server.url("/0")).exits(64, saying: "--limit-rate ")
  }

  @Test(.enabled("needs tmux(1)") { try await Need.tmux.isMet() })
  func `a terminal is asked for the password, and does not show it`() async throws {
    let tmux = try await Tmux(columns: 100, rows: 24)
    try await tmux.type("cd \(here) && \(try productPath("spoolrun")) get -u us3r \(server.url("/a"))")
    try await tmux.wait(for: "the question") { $0.contains("Password of us3r:") }
    try await tmux.type("s3cr3t")
    try await waitUntil("it is fetched") { names(in: here) == ["a"] }
    #expect(try await !tmux.screen().joined().contains("s3cr3t"))
  }

  @Test func `a proxy is used, and its URL is checked`() async throws {
    try await get("--proxy", "here", "http://files.invalid/a").exits(64, saying: "--proxy: must be")
    try await get("--proxy", server.url(""), "http://files.invalid/a").exits(0)
    #expect(server.requests(for: "http://files.invalid/a").count == 1)
  }

  @Test(arguments: [("-o", "-", "`spoolrun get -o FILE URL && tar xzf FILE`"), ("--user", "u", "--netrc")])
  func `what cannot be done is refused`(option: String, value: String, instead: String) async throws {
    let result = try await get(option, value, "http://127.0.0.1:9/a").exits(64, saying: "see `spoolrun get --help`")
    #expect(result.errors.contains(instead), "\(result)")
  }

  @Test(arguments: [
    (["hold"], "name jobs"), (["get", "--bogus", "u"], "unknown option '--bogus'"), (["subscribe"], "name a URL"),
    (["url"], "missing expected"),
    (["status", "--json", "--metrics"], "--metrics and"), (["hold", "-x"], "-x: unknown option"),
    (["run", "--jobs", "x"], "the value 'x'"), (["init", "--group", "x"], "--group: SEVERAL USERS"),
    (["run", "--mail=x"], "--mail: cron(8)"), (["nonsense", "--help"], "nonsense: no such command"),
    (["add", "--user", "a:b", "u"], "--user: write `netrc: FILE` into SPOOL/defaults"),
    (["get", "-O", "-", "u"], "-O: nothing of a file is shown"),
    (["status", "--failed"], "--failed: `spoolrun status`"),
    (["subscribe", "--interval", "1h", "u"], "--interval: --every TIME"),
    (["repair"], "repair: no such command, and no spool of this name; did you mean `spoolrun verify --refetch`?"),
    (["subscribe", "-n", "u"], "-n: write `netrc: FILE` into SPOOL/defaults"),
  ])
  func `all errors in a command line have one look`(arguments: [String], start: String) async throws {
    let result = try await spoolrun(arguments)
    #expect(
      result.exitStatus == 64 && result.output == "" && result.errors.hasPrefix("spoolrun: \(start)"), "\(result)")
    #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
  }

  @Test(arguments: [
    ("version", "--version"), ("unsubscribe", "cancel"), ("log", "status"), ("edit", "url"), ("wget", "get"),
    ("metrics", "status --metrics"), ("import", "add --from"), ("sync", "subscribe"), ("failed", "status"),
  ])
  func `words of others lead to ours`(word: String, command: String) {
    #expect(Suggestion.command(for: word, among: Spoolrun.commandNames) == command)
  }
}
