import Glibc
import TestSupport
import Testing

/// One file, now: `spoolrun get`, with a spool of its own for each test.
@Suite struct GetTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws { (home, server) = (try Self.makeHome(), try simpleServer()) }

  // MARK: a file

  @Test func `the file comes into the current directory, and a second time nothing is fetched`() async throws {
    let result = try await get(server.url("/a.bin"))
    #expect(result.status == .exited(0) && result.output == "" && result.errors == "", "\(result)")
    #expect(names(in: here) == ["a.bin"])
    #expect(try bytes("a.bin") == Array("payload\n".utf8))
    #expect(names(in: here, isHiddenToo: true) == ["a.bin"], "nothing else is left")
    #expect((fileStatus(personal)?.st_mode ?? 0) & 0o777 == 0o700, "made, for this person alone")

    try await get(server.url("/a.bin")).exits(0, saying: "a.bin: is there already")
    #expect(server.requests.count == 1)
  }

  @Test(arguments: [
    ("", "022", 0o644), ("", "002", 0o664), ("", "000", 0o664), ("", "077", 0o600), ("--mode=640", "022", 0o640),
  ])
  func `the file has the permissions of any new file, or those that are asked for`(
    option: String, mask: String, expected: mode_t
  ) async throws {
    let line = "umask \(mask); exec '\(try productPath("spoolrun"))' get \(option) -o made/ '\(server.url("/a.bin"))'"
    let result = try await run(
      ["/bin/sh", "-c", line], environment: testEnvironment.merging(environment) { $1 }, directory: here)
    #expect(result.status == .exited(0), "\(result)")
    #expect((fileStatus("\(here)/made/a.bin")?.st_mode ?? 0) & 0o7777 == expected)
    #expect((fileStatus(personal)?.st_mode ?? 0) & 0o7777 == 0o700)
  }

  @Test func `without URLs, it goes on with what is here, and nowhere else`() async throws {
    try await get("--spool", "\(home.path)/other").exits(64, saying: "--spool needs the URLs again")
  }

  @Test func `a time that is past is refused`() async throws {
    try await get("--expires", "2001-01-01", "http://127.0.0.1:9/a").exits(64, saying: "is past")
    #expect(fileStatus(spool) == nil && fileStatus(personal) == nil)
  }

  @Test func `the permissions in defaults are for get, too`() async throws {
    try await get(server.url("/first")).exits(0)
    try #require(mkdir("\(home.path)/.config", 0o700) == 0 && mkdir("\(home.path)/.config/spoolrun", 0o700) == 0)
    try writeFile("\(home.path)/.config/spoolrun/defaults", "mode: 640\n")
    try await get(server.url("/a.bin")).exits(0)
    #expect((fileStatus("\(here)/a.bin")?.st_mode ?? 0) & 0o7777 == 0o640)
  }

  @Test func `it knows a file whose receipt was archived`() async throws {
    try #require(mkdir("\(home.path)/.local", 0o700) == 0 && mkdir(state, 0o700) == 0)
    try await get("--spool", personal, server.url("/a")).exits(0)
    for name in names(in: "\(personal)/done") {
      try setModificationTime("\(personal)/done/\(name)", secondsFromNow: -86_400)
    }
    let clean = try await spoolrun("clean", "--archive", "1h", personal)
    #expect(clean.output.hasPrefix("archived 1 receipt"), "\(clean)")
    try await get("--spool", personal, server.url("/a")).exits(0, saying: "a: is there already")
    #expect(unlink("\(here)/a") == 0)
    #expect(try await get("--spool", personal, server.url("/a")).status == .exited(0) && fileStatus("\(here)/a") != nil)
  }

  @Test func `it says that a file which is there is another, and fetches one that is gone`() async throws {
    try await get(server.url("/a")).exits(0)
    try writeFile("\(here)/a", [1])
    let changed = try await get(server.url("/a")).exits(1, saying: "a: is there, but has changed")
    #expect(changed.errors.contains(", or `spoolrun verify --refetch ./a`"), "\(changed)")
    let secret = try await get("-H", "X-Key: 1", server.url("/a"))
    #expect(secret.errors.contains("remove it, or use --overwrite"), "\(secret)")
    #expect(try bytes("a") == [1])
    let overwritten = try await get("--overwrite", server.url("/a"))
    #expect(overwritten.status == .exited(0) && server.requests.count == 2, "\(overwritten)")
    try #require(unlink("\(here)/a") == 0)
    try await get(server.url("/a")).exits(0)
    #expect(try bytes("a") == Array("payload\n".utf8))
    try writeFile("\(here)/b", [1])
    try await get(server.url("/b")).exits(1, saying: "b: exists, and nothing shows")
    #expect(try bytes("b") == [1])
  }

  @Test func `what the server does not have is status 1, and what it cannot give now is 75`() async throws {
    try await get(server.url("/404")).exits(1, saying: "404: http-404: ")
    try await get("--once", server.url("/500"), server.url("/a")).exits(75, saying: "500: http-500: ")
    #expect(names(in: here) == ["a"], "the others are fetched")
    let both = try await get("--once", server.url("/404"), server.url("/500"))
    #expect(both.status == .exited(1) && server.requests(for: "/500").count == 2, "tried again at once: \(both)")
  }

  @Test func `a server that cannot be reached ends it, and the way to wait is told`() async throws {
    let result = try await get("http://127.0.0.1:9/a").exits(1, saying: "connect: ")
    #expect(result.errors.contains("; with --patience TIME it waits for the server"), "\(result)")
    #expect(try await spoolrun("get", "--help").output.contains("for a single slow file"))
  }

  @Test func `a list is fetched, and then its files from beside it`() async throws {
    let digest = hex8(independentCRC32(Array("payload\n".utf8)))
    let server = try ScriptedServer { request, reply in
      if request.target == "/404/list.sfv" { return try reply.respond("404 Not Found", body: []) }
      let isList = request.target.hasPrefix("/d/list.sfv")
      let text = isList ? "a \(digest)\nb/c \(digest)\n" : "payload\n"
      let type = "Content-Type: \(isList ? "text/plain" : "image/png")"
      try reply.respond("200 OK", [type], body: Array(text.utf8))
    }
    try await get("--from", server.url("/404/list.sfv"), "-o", "set/").exits(1, saying: "set/list.sfv: http-404")
    #expect(fileStatus("\(here)/set/.spoolrun") == nil)
    for _ in 0..<2 {
      try await get("--type", "image/png", "--from", server.url("/d/list.sfv?x=y"), "-o", "set/").exits(0)
    }
    #expect(filesBelow("\(here)/set").sorted() == ["a", "b/c", "list.sfv"] && server.requests(for: "/d/a").count == 1)
    try await get("--from", server.url("/d/list.sfv"), server.url("/a"))
      .exits(64, saying: "either a list by --from, or URLs")
  }

  @Test func `a wrong digest publishes nothing, and the right one then does`() async throws {
    let wrong = try await get("--once", "--crc32", "00000000", server.url("/a"))
    // After 4 seconds the next attempt is due, which finds the same: a command that stood still makes it, too.
    let isSlow = wrong.duration > .seconds(4)
    #expect(wrong.errors.contains(isSlow ? "a: mismatch" : "a: mismatch-crc32: "), "\(wrong)")
    #expect(wrong.status == .exited(75) || isSlow && wrong.status == .exited(1), "\(wrong)")
    #expect(names(in: here) == [])
    let right = try await get("--crc32", hex8(independentCRC32(Array("payload\n".utf8))), server.url("/a"))
    #expect(right.status == .exited(0) && names(in: here) == ["a"], "\(right)")
    #expect(names(in: "\(spool)/partial") == [])
  }

  @Test func `with a text instead of a URL, a hook of the spool says where the file is`() async throws {
    try await get("--resolve", "x").exits(64, saying: "--output FILE")
    try await get("--resolve", "x", "-o", "a").exits(1, saying: "hooks/resolve")
    try #require(mkdir("\(personal)/hooks", 0o700) == 0 || errno == EEXIST)
    let script = "#!/bin/sh\necho \"url: \(server.url("/"))$SPOOLRUN_RESOLVE\"\n"
    try writeFile("\(personal)/hooks/resolve", script)
    try #require(chmod("\(personal)/hooks/resolve", 0o700) == 0)
    let result = try await get("--resolve", "x", "-o", "a")
    #expect(result.status == .exited(0) && server.requests.map(\.target) == ["/x"], "\(result)")
    #expect(try bytes("a") == Array("payload\n".utf8))
    // Another text is another file.
    try await get("--resolve", "y", "-o", "a").exits(1, saying: "exists, and nothing shows")
    try writeFile("\(here)/list", "resolve: z\noutput: z\n")
    try await get("--from", "list").exits(0)
    #expect(names(in: here) == ["a", "list", "z"])
  }

  // MARK: places

  @Test func `-o names a file, a directory or one that is to be made`() async throws {
    try await get("-o", "x", server.url("/a")).exits(0)
    try await get("-o", "new/d/", server.url("/a"), server.url("/b")).exits(0)
    try await get("-o", "new", server.url("/c")).exits(0)
    try await get("-o", "\(here)/other/y", server.url("/a")).exits(0)
    // A link that the person made is the person's choice.
    try #require(symlink("new/d", "\(here)/link") == 0)
    try await get("-o", "link/z", server.url("/a")).exits(0)
    #expect(Set(filesBelow(here)).subtracting(["link"]) == ["x", "new/d/a", "new/d/b", "new/d/z", "new/c", "other/y"])
    // By whatever name.
    try await get("-o", "new/d/z", server.url("/a")).exits(0, saying: "is there already")
  }

  @Test func `several urls are files, or with one name mirrors of one`() async throws {
    try await get(server.url("/a.tar.gz?v=1"), server.url("/a.tar.gz?v=2")).exits(0)
    let found = names(in: here)
    #expect(found.count == 2 && found.allSatisfy { $0.wholeMatch(of: /a~[0-9a-f]{16}\.tar\.gz/) != nil }, "\(found)")
    try await get("--size", "8", server.url("/a"), server.url("/b")).exits(64, saying: "--size is for one file")
    try await get("-o", "unmade/", "--size", "many", server.url("/a")).exits(64)
    #expect(!names(in: here).contains("unmade"), "a command that is refused makes nothing")
    try await get("-o", "one", server.url("/404"), server.url("/a")).exits(64, saying: "end in different names")
    let sum = hex8(independentCRC32(Array("payload\n".utf8)))
    try await get("-o", "one", "--crc32", sum, server.url("/404"), server.url("/a")).exits(0)
    #expect(try bytes("one") == Array("payload\n".utf8))
    try await get(server.url("/")).exits(64, saying: "--output")
  }

  @Test func `a home directory, which contains the spool, gets its files; the spool gets none`() async throws {
    for _ in 1...2 {
      let result = try await startSpoolrun(["get", server.url("/a")], environment: environment, directory: home.path)
        .result()
      #expect(result.status == .exited(0), "\(result)")
    }
    #expect(try readFile("\(home.path)/a") == Array("payload\n".utf8))
    #expect(server.requests.count == 1)
    // As it is while another command runs.
    try await get("--once", server.url("/503")).exits(75)
    for place in ["\(spool)/new", spool, "\(spool)/roots"] {
      let result = try await get("-o", "\(place)/job", server.url("/a"))
      #expect(result.status == .exited(64) && result.errors.contains("the spool"), "\(place): \(result)")
    }
    try await runTool(["/bin/cp", "-a", ".spoolrun/.", personal], directory: here)
    for place in ["\(personal)/new", personal, "\(personal)/roots"] {
      let result = try await get("-o", "\(place)/job", server.url("/a"))
      #expect(result.status == .exited(1) && result.errors.contains("the spool"), "\(place): \(result)")
    }
  }

  // MARK: interruption

  private func interrupt(_ signal: Int32) async throws -> (server: ScriptedServer, result: CommandResult) {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    // By one connection: several may come where the server's thread stands still.
    let command = try start(["--timeout", "1h", "--connections", "1", server.url("/a")])
    try await waitUntil("half of it is there") { length == halfwayBody.count / 2 }
    let result = try await command.stop(signal)
    gate.open()
    return (server, result)
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGKILL])
  func `the same command goes on`(signal: Int32) async throws {
    let (server, result) = try await interrupt(signal)
    if signal == SIGKILL {
      #expect(result.status == .killed(signal: SIGKILL))
    } else {
      #expect(result.status == .exited(75) && result.errors.contains("a: stopped; the same command"), "\(result)")
      #expect(
        result.errors.contains(/what has come so far, [0-9.]+K, is in .*spoolrun: .*goes on from there/),
        "\(result)")
    }
    #expect(names(in: here) == [])
    try await get("--timeout", "1h", "--connections", "1", server.url("/a")).exits(0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: halfwayBody.count / 2)])
    #expect(try bytes("a") == halfwayBody)
  }

  @Test func `so does one with other options, and after it was paused`() async throws {
    let (server, _) = try await interrupt(SIGINT)
    let job = try #require(names(in: "\(spool)/partial").first { !$0.hasSuffix(".part") })
    try await spoolrun("hold", "--spool", spool, job).exits(0)
    try await get("--header", "X-One: 1", "--connections", "1", server.url("/a")).exits(0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: halfwayBody.count / 2)])
    #expect(server.requests[1].value("x-one") == "1")
    #expect(fileStatus(spool) == nil)
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `what is there stays known when --overwrite is stopped before it has an answer`(signal: Int32) async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.value("x-slow") != nil { try reply.stall(until: gate) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: [1, 2, 3])
    }
    try await get(server.url("/a")).exits(0)
    let command = try start(["--overwrite", "--header", "X-Slow: 1", server.url("/a")])
    try await waitUntil("it is asked for") { server.requests.count == 2 }
    try await command.stop(signal)
    gate.open()
    let again = try await get(server.url("/a"))
    #expect(again.status == .exited(0) && server.requests.count == 2, "\(again)")
    #expect(try bytes("a") == [1, 2, 3])
  }

  /// What it leaves, the next one removes.
  @Test(arguments: [SIGINT, SIGTERM], [true, false])
  func `a signal ends it while it compares a large file with its receipt`(
    signal: Int32, isOfList: Bool
  ) async throws {
    let server = try listServer()
    let arguments = isOfList ? ["--from", server.url("/list.sfv")] : [server.url("/a")]
    try await start(arguments).result().exits(0)
    let record = "\(personal)/got/\(try #require(names(in: "\(personal)/got").first))"
    let text = try readText(record)
    // Sparse: it takes a minute and more to read it.
    let size = 1 << 39
    try #require(truncate("\(here)/a", size) == 0)
    try writeFile(record, text.replacing("size=8 ", with: "size=\(size) "))
    let command = try start(arguments)
    let (inode, files) = (fileStatus("\(here)/a")?.st_ino, "/proc/\(command.processID)/fd")
    try await waitUntil("it reads the file") {
      names(in: files).contains { name in
        var status = Glibc.stat()
        return stat("\(files)/\(name)", &status) == 0 && status.st_ino == inode
      }
    }
    let result = try await command.stop(signal)
    #expect(result.status == .killed(signal: signal), "\(result)")
    try #require(unlink("\(here)/a") == 0)
    try await start(arguments).result().exits(0)
    #expect(names(in: here, isHiddenToo: true) == (isOfList ? ["a", "list.sfv"] : ["a"]))
  }

  /// A list with the file `a`, and everything else as by ``simpleServer(_:)``.
  private func listServer() throws -> ScriptedServer {
    let body = Array("payload\n".utf8)
    return try ScriptedServer { request, reply in
      let isList = request.target.hasSuffix("/list.sfv")
      try reply.respond("200 OK", body: isList ? Array("a \(hex8(independentCRC32(body)))\n".utf8) : body)
    }
  }

  /// The hook goes on when the command has heard the signal.
  @Test(arguments: ["get", "verify"])
  func `a command that was stopped begins with nothing else, even if its file has come`(name: String) async throws {
    let server = try listServer()
    var arguments = ["get", "--from", server.url("/list.sfv")]
    if name == "verify" {
      arguments = ["verify", "--refetch"] + ["1", "2"].map { "\(here)/\($0)/a" }
      for number in ["1", "2"] {
        try await get("-o", "\(number)/", server.url("/a")).exits(0)
        try writeFile("\(here)/\(number)/a", [1])
      }
    }
    let requests = server.requests.count
    let script = "trap '' TERM; : >'\(home.path)/began'; until test -e '\(home.path)/go'; do sleep 0.05; done"
    try await install("done", script)
    let command = try startSpoolrun(arguments, environment: environment, directory: here)
    try await waitUntil("the hook runs") { fileStatus("\(home.path)/began") != nil }
    command.send(signal: SIGTERM)
    try await waitUntil("it has heard it") {
      let status = try? readFile("/proc/\(command.processID)/status")
      return status.map { String(decoding: $0, as: UTF8.self).contains("ShdPnd:\t0000000000000000") } ?? true
    }
    try writeFile("\(home.path)/go", [])
    let result = try await command.result().exits(75, saying: "stopped; the same command")
    #expect(server.requests.count == requests + 1, "\(result)")
    if name == "get" { return #expect(names(in: here) == ["list.sfv"]) }
    #expect(try bytes("1/a").count > 1 && bytes("2/a") == [1])
  }

  @Test func `no worker takes the spool of a get for its own`() async throws {
    let (server, _) = try await interrupt(SIGTERM)
    try await spoolrun("--once", spool).exits(64, saying: "the spool of a `spoolrun get`")
    #expect(server.requests.count == 1)
  }

  // MARK: lists

  @Test func `the files of a list come below the directory, and no name leads out of it`() async throws {
    try writeFile("\(home.path)/list", "\(server.url("/a"))\n\(server.url("/b"))\n")
    let result = try await get("--from", "\(home.path)/list", "-o", "d/")
    #expect(result.status == .exited(0) && Set(filesBelow(here)) == ["d/a", "d/b"], "\(result)")
    let again = try await get("--from", "\(home.path)/list", "-o", "d/")
    #expect(again.status == .exited(0) && server.requests.count == 2, "\(again)")

    // A list is by somebody else: a link does not lead its files elsewhere.
    try #require(symlink(home.path, "\(here)/link") == 0)
    let crc = hex8(independentCRC32(Array("payload\n".utf8)))
    try writeFile("\(home.path)/x.sfv", "sub/c \(crc)\nlink/e \(crc)\n")
    try await get("--from", "\(home.path)/x.sfv", "--format", "sfv", "--base", server.url("/"))
      .exits(1, saying: "link/e: bad-output")
    #expect(try bytes("sub/c") == Array("payload\n".utf8) && !names(in: home.path).contains("e"))

    try writeFile("\(home.path)/bad", "\(server.url("/a"))\nno url\n")
    try await get("--from", "\(home.path)/bad").exits(64, saying: "/bad:2: ")
    try await get("--from", "\(home.path)/list", "--size", "8").exits(64)
    try await get("--base", "http://h/").exits(64)
    try await get("-o", "none/").exits(64)
  }

  @Test func `files of a list that want one name get marks, and are told`() async throws {
    try writeFile("\(home.path)/list", ["/a?1", "/a?2", "/b"].map { "\(server.url($0))\n" }.joined())
    let result = try await get("--from", "\(home.path)/list")
    #expect(result.status == .exited(0) && names(in: here).count == 3, "\(result)")
    #expect(result.errors.contains("2 of the files get a mark in their names, such as a~"), "\(result)")
  }

  // MARK: other

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `in a terminal there is a bar with the file's name`() async throws {
    // The rest comes when the bar is there, however long the command stands still before it draws it.
    let gate = try Gate()
    let server = try halfwayServer([UInt8](repeating: 0x78, count: 60_000), gate: gate)
    let variables = testEnvironment.merging(environment) { $1 }.merging(["TERM": "xterm"]) { $1 }
    let command = try "\(productPath("spoolrun")) get --timeout 1h \(server.url("/slow.bin"))"
    let result = try await runInTerminal(
      "stty cols 60 rows 20; cd \(here); \(command)", environment: variables, open: gate
    ) { $0.contains("=>") }
    #expect(
      result.status == .exited(0) && result.output.contains("slow.bin ") && result.output.contains("=>"), "\(result)")
    let end = /spoolrun: slow\.bin: \u{1B}\[32mdone\u{1B}\[0m \(58\.6K in [0-9.ms]+(, [0-9.KMB]+\/s)?\)\r\n/
    #expect(result.output.contains(end), "\(result)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `in a terminal the end of several files is summed up`() async throws {
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/404": try reply.respond("404 Not Found", body: [])
      // An hour later: the next attempt is not due before the command has ended.
      case "/503": try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
      default: try reply.respond("200 OK", body: Array("payload\n".utf8))
      }
    }
    let variables = testEnvironment.merging(environment) { $1 }
    let urls = ["/a.bin", "/b.bin", "/404", "/503"].map { server.url($0) }.joined(separator: " ")
    let result = try await runInTerminal(
      "cd \(here); \(productPath("spoolrun")) get --once \(urls)", environment: variables)
    #expect(result.status == .exited(1), "\(result)")
    #expect(
      result.output.contains(/spoolrun: a\.bin: done \([0-9]+B in [0-9.ms]+(, [0-9.KM]+B?\/s)?\)\r\n/), "\(result)")
    let advice = "  The file is not there: look for its new place. The same command tries again.\r\n"
    #expect(result.output.contains(advice), "\(result)")
    let end = /spoolrun: 2 done \([0-9]+B fetched in [0-9ms]+\), 1 failed, 1 tries again in (1h00m|5[0-9]m[0-9]+s)\r\n$/
    #expect(result.output.contains(end), "\(result)")
  }
}
