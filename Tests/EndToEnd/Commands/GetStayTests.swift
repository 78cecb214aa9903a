import Glibc
import TestSupport
import Testing

/// `spoolrun get` stays until the file is there, as long as that may help.
@Suite struct GetStayTests: GetScene {
  let home: TemporaryDirectory

  init() throws { home = try Self.makeHome() }

  @Test func `what the server cannot give now is tried again in place, and the reason is said once`() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth <= 2 { return try reply.respond("503 Service Unavailable", ["Retry-After: 1"], body: []) }
      try reply.respond("200 OK", body: [1])
    }
    let result = try await get(server.url("/a"))
    #expect(result.status == .exited(0) && server.requests.count == 3, "\(result)")
    let told = result.errors.split(separator: "\n").filter { $0.contains("a: http-503: ") }
    #expect(told.count == 1 && told[0].contains("; tries again at "), "\(result)")
    #expect(!result.errors.contains("a worker of the spool"), "\(result)")
    #expect(try bytes("a") == [1])
  }

  @Test func `--patience ends it after a time without a byte, and --once at the first failure`() async throws {
    // A server that answers 503 rests, and what is not begun by then has to wait.
    let (server, other) = (try simpleServer(), try simpleServer())
    // For longer than a busy machine lets a server's thread wait.
    let patient = try await get("--patience", "30s", server.url("/503"), other.url("/a"))
    #expect(patient.status == .exited(75) && patient.duration >= .seconds(30), "\(patient)")
    #expect(patient.errors.contains("503: http-503: ") && names(in: here) == ["a"], "\(patient)")
    #expect(patient.errors.contains("the same command goes on"), "\(patient)")
    let once = try await get("--once", server.url("/503"))
    #expect(once.status == .exited(75) && once.duration < .seconds(200), "the default is 15 minutes: \(once)")
    try await get("--patience", "soon", server.url("/a")).exits(64, saying: "--patience must be a time")
  }

  @Test func `--tries counts the failures of servers, too`() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("503 Service Unavailable", ["Retry-After: 1"], body: [])
    }
    try await get("--tries", "2", server.url("/a")).exits(1, saying: "a: http-503: ")
    #expect(server.requests.count == 2)
  }

  /// The server rests, so most of the jobs never began.
  @Test func `--patience is for all files together`() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
    }
    // Not so short that it ends before a server's thread that stood still has answered. One after the other, the files
    // would take ten minutes.
    let result = try await start(["--patience", "30s"] + (0..<20).map { server.url("/\($0)") }).result()
    #expect(result.status == .exited(75) && result.duration < .seconds(200), "\(result)")
    #expect(server.requests.count < 20 && names(in: "\(spool)/new").count > 0)
    // Several have failed, and the reason is that of all.
    #expect(server.requests.count > 1)
    #expect(result.errors.split(separator: "\n").count { $0.contains("; tries again at ") } == 1, "\(result)")
  }

  @Test func `a misspelled server is no reason to wait`() async throws {
    let server = try simpleServer()
    let dead = try DeadPort()
    let place = "http://localhost:\(dead.port)"
    let typo = try await get("\(place)/a", "\(place)/b", server.url("/c"))
    // To wait would take 15 minutes.
    #expect(typo.status == .exited(1) && typo.duration < .seconds(200), "\(typo)")
    #expect(typo.errors.contains("a: connect: ") && typo.errors.contains("b: connect: "), "\(typo)")
    #expect(names(in: here) == ["c"])
    let unknown = try await get("http://no-such-host.invalid/a")
    // Where there is no resolver at all, it cannot be known that there is no such name.
    #expect(unknown.status == .exited(1) && unknown.errors.contains("a: resolve: "), "\(unknown)")
    #expect(dead.port > 0, "it is kept until here")
  }

  @Test func `--times gives files the server's time`() async throws {
    let server = try ScriptedServer { request, reply in
      let time = request.target == "/a" ? ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"] : []
      try reply.respond("200 OK", ["Date: Thu, 26 Nov 2026 12:00:00 GMT"] + time, body: [1])
    }
    try await get("--times", server.url("/a"), server.url("/b")).exits(0)
    #expect(fileStatus("\(here)/a")?.st_mtim.tv_sec == 784_111_777)
    #expect((fileStatus("\(here)/b")?.st_mtim.tv_sec ?? 0) > 1_700_000_000)
    #expect(try await get(server.url("/a")).errors.contains("is there already"))
  }

  /// It answered, so its name is right.
  @Test func `a server that goes away is waited for`() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth == 2 { return try reply.respond("503 Service Unavailable", ["Retry-After: 1"], body: []) }
      try reply.respond("200 OK", body: [1])
    }
    let result = try await get(server.url("/a"), server.url("/b"))
    #expect(result.status == .exited(0) && names(in: here) == ["a", "b"], "\(result)")
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `a place that may not be written is told before a byte is fetched`() async throws {
    let server = try simpleServer()
    try #require(chmod(home.path, 0o755) == 0 && mkdir("\(here)/closed", 0o755) == 0)
    try #require(chown(here, 61_001, 61_001) == 0)
    let state = "\(home.path)/state"
    try #require(mkdir(state, 0o700) == 0 && chown(state, 61_001, 61_001) == 0)
    let crc = hex8(independentCRC32(Array("payload\n".utf8)))
    try writeFile("\(home.path)/x.sfv", "closed/c \(crc)\nd \(crc)\n")
    try #require(chmod("\(home.path)/x.sfv", 0o644) == 0)
    for arguments in [
      ["-o", "closed/", server.url("/a")], ["--from", "\(home.path)/x.sfv", "--base", server.url("/")],
    ] {
      let script =
        "exec 3<\"$0\"; cd \(here); exec env XDG_STATE_HOME=\(state) setpriv --reuid=61001 --regid=61001 "
        + "--clear-groups /proc/self/fd/3 get \"$@\""
      let result = try await run(["/bin/sh", "-c", script, productPath("spoolrun")] + arguments)
      #expect([.exited(1), .exited(73)].contains(result.status), "\(result)")
      #expect(result.errors.contains(/closed.*: Permission denied/), "\(result)")
    }
    #expect(server.requests.map(\.target) == ["/d"] && names(in: "\(here)/closed") == [])
  }
}
