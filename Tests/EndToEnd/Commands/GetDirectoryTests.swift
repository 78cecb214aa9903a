import Glibc
import Spool
import TestSupport
import Testing

/// The spool that `spoolrun get` makes where its files go: whose it is, who uses it, and that it goes.
@Suite struct GetDirectoryTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws { (home, server) = (try Self.makeHome(), try simpleServer()) }

  private var records: [String] { names(in: "\(personal)/gets") }
  private var receipts: [String] { names(in: "\(personal)/got") }

  /// Leaves a spool with a job that waits.
  private func leave(_ server: ScriptedServer) async throws {
    let result = try await get("--once", server.url("/503"))
    #expect(result.status == .exited(75) && fileStatus(spool) != nil, "\(result)")
  }

  @Test func `what is left is one line a file, by which the same command needs no request`() async throws {
    try await get(server.url("/a"), server.url("/b")).exits(0)
    #expect(names(in: here, isHiddenToo: true) == ["a", "b"] && records == [] && receipts.count == 1)
    let lines = try readText("\(personal)/got/\(receipts[0])").split(separator: "\n")
    #expect(lines.count == 2 && lines.allSatisfy { $0.contains("size=8 crc32=") }, "\(lines)")
    let crc = hex8(independentCRC32(Array("payload\n".utf8)))
    for options in [[], ["--crc32", crc], ["--size", "8"]] {
      try await start(options + [server.url("/a")]).result().exits(0, saying: "a: is there already")
    }
    try writeFile("\(here)/a", [1])
    try await get(server.url("/a")).exits(1, saying: "has changed since it was fetched")
    #expect(server.requests.count == 2 && names(in: here, isHiddenToo: true) == ["a", "b"])
  }

  @Test func `a file that cannot be compared keeps no other from being fetched`() async throws {
    let crc = hex8(independentCRC32(Array("payload\n".utf8)))
    let list = ["--from", "\(home.path)/x.sfv", "--base", server.url("/")]
    try writeFile("\(home.path)/x.sfv", "sub/c \(crc)\n")
    try await start(list).result().exits(0)
    try #require(rename("\(here)/sub", "\(here)/real") == 0 && symlink("real", "\(here)/sub") == 0)
    try writeFile("\(home.path)/x.sfv", "sub/c \(crc)\nd \(crc)\n")
    let result = try await start(list).result()
    #expect(
      result.status == .exited(1) && result.errors.contains("sub/c: is there, but cannot be compared"), "\(result)")
    #expect(fileStatus("\(here)/d") != nil)
  }

  @Test func `a command that finds the file does not end another one that is to replace it`() async throws {
    let server = try ScriptedServer { request, reply in
      // It waits for an hour: its next attempt does not begin under the test's eyes.
      if request.value("user-agent") == "again" {
        return try reply.respond("503 Later", ["Retry-After: 3600"], body: [])
      }
      try reply.respond("200 OK", body: [1])
    }
    let url = server.url("/a")
    try await get(url).exits(0)
    let other = try start(["--overwrite", "--user-agent", "again", url])
    let partial = "\(spool)/partial"
    @Sendable func isWaiting() -> Bool { names(in: partial).contains { $0.hasPrefix("a-") && !$0.hasSuffix(".part") } }
    try await waitUntil("it waits for its next attempt") { isWaiting() }
    try await get(url).exits(0)
    #expect(isWaiting())
    try await other.stop()
    // It does so when nobody runs it.
    try await get(url).exits(0)
    #expect(fileStatus(spool) == nil)
  }

  /// It may have dropped its job, and have no worker yet.
  @Test func `a command ends no job of another one that is here`() async throws {
    let server = try ScriptedServer { request, reply in
      if request.value("user-agent") == "again" { return try reply.respond("503 Later", body: []) }
      if request.target == "/404" { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", body: [1])
    }
    let (url, missing) = (server.url("/a"), server.url("/404"))
    try await get(url).exits(0)
    try await get("--once", "--overwrite", "--user-agent", "again", url).exits(75)
    let other = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(other >= 0 && flock(other, LOCK_SH | LOCK_NB) == 0)
    try await get(url).exits(0)
    try await get(missing).exits(1)
    #expect(names(in: "\(spool)/partial").count == 1 && names(in: "\(spool)/failed").count == 1)
    close(other)
    try await get(url).exits(0)
    try await get(missing).exits(1)
    #expect(names(in: here, isHiddenToo: true) == ["a"])
  }

  @Test func `a home that cannot be written to is told as such, and nothing is left`() async throws {
    let lock = "\(personal)/gets/.lock"
    try await runTool(["/bin/mkdir", "-p", lock], directory: home.path)
    let result = try await get("http://127.0.0.1:9/a")
    #expect(
      result.status == .exited(73) && result.errors.contains("no spool can be made for \(here): create \(lock): ")
        && result.errors.contains("set XDG_STATE_HOME"), "\(result)")
    #expect(names(in: here, isHiddenToo: true) == [])
  }

  @Test func `it is the person's alone, and git ignores it`() async throws {
    try await leave(server)
    #expect((fileStatus(spool)?.st_mode ?? 0) & 0o7777 == 0o700)
    #expect(try readFile("\(spool)/.gitignore") == Array("*\n".utf8))
    #expect(records.count == 1)
  }

  @Test func `options without a url are not for what is left`() async throws {
    try await leave(simpleServer())
    try await get("--user-agent", "x").exits(64, saying: "options need the URLs again")
    try await get("-u", "a:b").exits(64, saying: "--user needs the URLs")
  }

  @Test func `without a url it goes on with all that is left, but for what is paused`() async throws {
    try await get().exits(64, saying: "nothing here to go on with")
    let server = try ScriptedServer { request, reply in
      // For so long that no command makes the next attempt by itself, however slow it is.
      if request.nth == 1 {
        return try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
      }
      try reply.respond("200 OK", body: [1])
    }
    let crc = hex8(independentCRC32([1]))
    try writeFile("\(home.path)/x.sfv", "sub/c \(crc)\nd \(crc)\n")
    let list = try await get("--once", "--from", "\(home.path)/x.sfv", "--base", server.url("/"))
    let paused = try await get("--once", server.url("/paused"))
    #expect(list.status == .exited(75) && paused.status == .exited(75), "\(list) \(paused)")
    try await spoolrun("hold", "--spool", spool, "paused").exits(0)
    let result = try await get()
    #expect(
      result.status == .exited(0) && Set(filesBelow(here).filter { !$0.hasPrefix(".") }) == ["sub/c", "d"], "\(result)")
    #expect(names(in: "\(spool)/hold").count == 1)
    try await get(server.url("/paused")).exits(0)
    #expect(names(in: here, isHiddenToo: true) == ["d", "paused", "sub"])
  }

  @Test func `what failed for good leaves nothing, and of a list the job`() async throws {
    try await get(server.url("/404"), server.url("/a")).exits(1)
    #expect(names(in: here, isHiddenToo: true) == ["a"])
    try writeFile("\(home.path)/list", "\(server.url("/404"))\n\(server.url("/b"))\n")
    try await get("--from", "\(home.path)/list").exits(1)
    #expect(names(in: "\(spool)/failed").count == 1)
    // It was not typed now.
    try await get().exits(1)
    #expect(names(in: "\(spool)/failed").count == 1)
  }

  @Test(arguments: [true, false])
  func `a file that is there keeps its receipt where it cannot be fetched again`(isRepair: Bool) async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.target == "/later" { return try reply.respond("503 Later", body: []) }
      if gate.isOpen { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", body: [1])
    }
    // The other job keeps the spool.
    try await get("--once", server.url("/a"), server.url("/later")).exits(75)
    gate.open()
    if isRepair {
      try writeFile("\(here)/a", [2])
      try await spoolrun("verify", "--refetch", "./a", environment: environment, directory: here).exits(1)
    } else {
      try await get("--overwrite", server.url("/a")).exits(1)
    }
    let job = try #require(names(in: "\(spool)/failed").first)
    #expect(try readText("\(spool)/failed/\(job)").contains("\ndone: "))
  }

  /// An archive cannot bring jobs, data or receipts.
  @Test func `one that came from elsewhere is not used`() async throws {
    try await leave(server)
    try #require(rename(spool, "\(here)/packed") == 0 && mkdir("\(here)/there", 0o755) == 0)
    try await runTool(["/bin/cp", "-a", "packed", ".spoolrun"], directory: here)
    try await runTool(["/bin/cp", "-a", "packed", "there/.spoolrun"], directory: here)
    for place in ["", "there/"] {
      let result = try await get("--once", "-o", "./\(place)", server.url("/a"))
      #expect(
        result.status == .exited(0) && result.errors.contains("from elsewhere, such as an archive or"), "\(result)")
      #expect(names(in: "\(here)/\(place).spoolrun/partial").count == 1 && fileStatus("\(here)/\(place)a") != nil)
    }
    #expect(names(in: "\(personal)/done").count == 2)
  }

  /// As when a file system gives the inode's number to one that an archive brings after it was removed.
  @Test func `an inode's number alone does not make one the person's`() async throws {
    try await leave(server)
    try #require(unlink("\(spool)/.id") == 0 && symlink("0123456789abcdef0123456789abcdef", "\(spool)/.id") == 0)
    try await get("--once", server.url("/a")).exits(0, saying: "comes from elsewhere")
    #expect(names(in: "\(spool)/partial").count == 1 && names(in: "\(personal)/done").count == 1)
  }

  @Test(arguments: ["file", "link", "empty"])
  func `something else of its name is left alone, and an empty one is taken`(kind: String) async throws {
    switch kind {
    case "file": try writeFile(spool, [1])
    case "link": try #require(mkdir("\(home.path)/x", 0o700) == 0 && symlink("\(home.path)/x", spool) == 0)
    default: try #require(mkdir(spool, 0o777) == 0)
    }
    let result = try await get(server.url("/a"))
    #expect(result.status == .exited(0) && names(in: here) == ["a"], "\(result)")
    #expect(result.errors.contains("is not one of yours") == (kind != "empty"), "\(result)")
    #expect((fileStatus(spool) != nil) == (kind != "empty") && names(in: "\(home.path)/x") == [])
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `another user's is in nobody's way`() async throws {
    try #require(chmod(here, 0o1777) == 0 && mkdir(spool, 0o777) == 0 && chown(spool, 61_001, 61_001) == 0)
    try await get(server.url("/a")).exits(0, saying: "belongs to another user")
    #expect(filesBelow(spool) == [] && fileStatus("\(here)/a") != nil)
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `settings of another user are told as such, and nothing is left`() async throws {
    let config = "\(home.path)/.config/spoolrun"
    try await runTool(["/bin/mkdir", "-p", config], directory: home.path)
    try #require(chown(config, 61_001, 61_001) == 0)
    let result = try await get("http://127.0.0.1:9/a")
    #expect(
      result.status == .exited(78) && result.errors.contains("cannot be used: open \(config): it is another user's"),
      "\(result)")
    #expect(names(in: here, isHiddenToo: true) == [])
  }

  @Test(.enabled("needs root, and a mount namespace") { try await Need.mounts.isMet() })
  func `what is there is known where nothing can be written`() async throws {
    try await get(server.url("/a")).exits(0)
    func getReadOnly(_ url: String) async throws -> CommandResult {
      let script = "mount --bind '\(here)' '\(here)'; mount -o remount,bind,ro '\(here)'; cd '\(here)'; exec \"$@\""
      return try await startSpoolrun(
        ["get", url], environment: environment, directory: home.path,
        prefix: ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script, "sh"]
      ).result()
    }
    try await getReadOnly(server.url("/a")).exits(0, saying: "a: is there already")
    try await getReadOnly(server.url("/b")).exits(73, saying: "cannot be written to")
    #expect(server.requests.count == 1)
  }

  /// Only the person's own are asked.
  @Test func `it has no hooks and no defaults`() async throws {
    try await leave(server)
    try writeFile("\(spool)/defaults", "mode: 640\nbad\n")
    try #require(mkdir("\(spool)/hooks", 0o700) == 0)
    try writeFile("\(spool)/hooks/verify", "#!/bin/sh\ntouch \(home.path)/run\nexit 1\n")
    try #require(chmod("\(spool)/hooks/verify", 0o700) == 0)
    let result = try await get(server.url("/a"))
    #expect(result.status == .exited(0) && fileStatus("\(home.path)/run") == nil, "\(result)")
    try await install("verify", "exit 1")
    try await get("--once", server.url("/b")).exits(75, saying: "b: rejected: ")
  }

  @Test func `what the hook deliver has moved on is not missing`() async throws {
    try await install("deliver", "mv \"$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT\" \(home.path)/elsewhere")
    #expect(try await get(server.url("/a")).status == .exited(0) && names(in: here) == [])
    let result = try await spoolrun("verify", "-v", "--refetch", environment: environment, directory: here)
    #expect(result.status == .exited(0) && result.output == "a: delivered\n", "\(result)")
  }

  /// What the person's own spool is for.
  @Test func `where it cannot be, defaults, hooks and receipts are the same`() async throws {
    try await get(server.url("/a")).exits(0)
    try writeFile(spool, [1])
    try await get(server.url("/a")).exits(0, saying: "a: is there already")
    #expect(server.requests.count == 1)
    let config = "\(home.path)/.config/spoolrun"
    try await runTool(["/bin/mkdir", "-p", config])
    try writeFile("\(config)/defaults", "mode: 640\n")
    try await get(server.url("/b")).exits(0)
    #expect((fileStatus("\(here)/b")?.st_mode ?? 0) & 0o777 == 0o640)
    try await install("verify", "exit 1")
    try await get("--once", server.url("/c")).exits(75, saying: "c: rejected: ")
  }

  @Test func `the newest receipt counts`() async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/503" { return try reply.respond("503 Service Unavailable", body: []) }
      try reply.respond("200 OK", body: [UInt8(request.nth)])
    }
    try await get(server.url("/a")).exits(0)
    let both = try await get("--once", "--overwrite", server.url("/a"), server.url("/503"))
    #expect(both.status == .exited(75) && names(in: "\(spool)/done").count == 1, "\(both)")
    try await get("--once", server.url("/a")).exits(0, saying: "a: is there already")
  }

  /// By its time, wherever it is.
  @Test func `a receipt in the person's own spool may be older than one of a spool that is gone`() async throws {
    let server = try ScriptedServer { request, reply in try reply.respond("200 OK", body: [UInt8(request.nth)]) }
    try writeFile(spool, [1])
    try await get(server.url("/a")).exits(0)
    try #require(names(in: "\(personal)/done").count == 1 && unlink(spool) == 0)
    // Receipts have seconds.
    let now = time(nil)
    try await waitUntil("the next second") { time(nil) > now }
    try await get("--overwrite", server.url("/a")).exits(0)
    try writeFile(spool, [1])
    try await get(server.url("/a")).exits(0, saying: "a: is there already")
  }

  @Test func `a command for a file that is there stops no other that fetches it again`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.nth == 2 { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: [UInt8(request.nth)])
    }
    try await get(server.url("/a")).exits(0)
    let again = try start(["--timeout", "1h", "--overwrite", server.url("/a")])
    try await waitUntil("it is asked for") { server.requests.count == 2 }
    try await get(server.url("/a")).exits(0, saying: "a: is there already")
    gate.open()
    let result = try await again.result()
    #expect(try result.status == .exited(0) && bytes("a") == [2], "\(result)")
  }

  @Test func `a list without files makes none`() async throws {
    try writeFile("\(home.path)/list", "# nothing\n")
    try await get("--from", "\(home.path)/list").exits(64, saying: "the list names no file")
    #expect(names(in: here, isHiddenToo: true) == [])
  }

  @Test func `a list with directories has one at the top, and none of its files gets into one`() async throws {
    let crc = hex8(independentCRC32(Array("payload\n".utf8)))
    try writeFile("\(home.path)/x.sfv", "sub/c \(crc)\nsub/deep/d \(crc)\n")
    let result = try await get("--from", "\(home.path)/x.sfv", "--base", server.url("/"))
    #expect(result.status == .exited(0) && Set(filesBelow(here)) == ["sub/c", "sub/deep/d"], "\(result)")
    #expect(names(in: here, isHiddenToo: true) == ["sub"])
    for place in [".spoolrun/new/x", "sub/.spoolrun/new/x"] {
      try writeFile("\(home.path)/x.sfv", "\(place) \(crc)\n")
      try await get("--from", "\(home.path)/x.sfv", "--base", server.url("/"))
        .exits(64, saying: "which is spoolrun's own")
    }
  }

  @Test func `two commands share it, and the last one takes it away`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.target == "/slow" { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: [1])
    }
    let slow = try start(["--timeout", "1h", server.url("/slow")])
    try await waitUntil("it is asked for") { server.requests.count == 1 }
    let quick = try await get(server.url("/quick"))
    #expect(quick.status == .exited(0) && names(in: "\(spool)/cur").count == 1, "\(quick)")
    gate.open()
    let result = try await slow.result()
    #expect(result.status == .exited(0) && names(in: here, isHiddenToo: true) == ["quick", "slow"], "\(result)")
    #expect(try await get(server.url("/quick")).errors.contains("is there already"))
  }

  /// Version 0.2 had one spool for all.
  @Test func `what version 0.2 has begun or fetched is not lost`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    try await runTool(["/bin/mkdir", "-p", state], directory: home.path)
    let former = try start(["--spool", personal, "--timeout", "1h", server.url("/a")])
    try await waitUntil("half of it is there") {
      names(in: "\(personal)/partial").contains {
        fileStatus("\(personal)/partial/\($0)").map { Int($0.st_size) } == halfwayBody.count / 2
      }
    }
    try await former.stop(SIGINT)
    gate.open()
    // By one connection: several may come where the server's thread stands still.
    try await get("--connections", "1", server.url("/a")).exits(0, saying: "goes on with what ")
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: halfwayBody.count / 2)])
    let again = try await get(server.url("/a"))
    #expect(again.errors.contains("a: is there already") && server.requests.count == 2, "\(again)")
    #expect(names(in: here, isHiddenToo: true) == ["a"])
  }
}
