import Glibc
import TestSupport
import Testing

@testable import Spool
@testable import spoolrun

/// Commands about jobs that name no spool, after gets that are not done; and jobs by parts of their names.
@Suite struct OwnSpoolsTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws { (home, server) = (try Self.makeHome(), try simpleServer()) }

  private func command(_ arguments: String..., directory: String? = nil) async throws -> CommandResult {
    var environment = environment
    environment["SPOOLRUN_SPOOL"] = ""
    return try await startSpoolrun(arguments, environment: environment, directory: directory ?? here).result()
  }

  private var elsewhere: String { "\(home.path)/elsewhere" }
  private func waiting(_ directory: String) -> Int { names(in: "\(directory)/.spoolrun/partial").count }

  /// Jobs of `503` and `503.tar` here, and one of `other503` elsewhere.
  private func leave() async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("503 Service Unavailable", body: []) }
    try await get("--once", server.url("/503"), server.url("/503.tar")).exits(75)
    try #require(mkdir(elsewhere, 0o755) == 0)
    try await get("--once", "-o", "../elsewhere/", server.url("/other503")).exits(75)
    #expect(waiting(here) == 2 && waiting(elsewhere) == 1)
  }

  @Test func `status, hold and cancel find the jobs of a person's gets`() async throws {
    try await command("status").exits(66)
    try await leave()
    let status = try await command("status").exits(0)
    #expect(status.output.contains("503.tar-") && status.output.contains("other503-"), "\(status)")
    try await command("status", "--json").exits(64, saying: "name one with --spool")
    try await command("status", "other", directory: "/").exits(0, printing: "other503-")

    try await command("hold", "other", directory: "/").exits(0, saying: "this is about your gets: ")
    #expect(names(in: "\(elsewhere)/.spoolrun/hold").count == 1 && waiting(here) == 2)
    let far = try await command("cancel", "--all", "--yes", directory: "/")
    #expect(far.status == .exited(66) && far.errors.contains("cancel --spool"), "a job that is gone is gone: \(far)")
    #expect(waiting(here) == 2)
    for directory in [here, elsewhere] {
      try await command("cancel", "--all", "--yes", directory: directory).exits(0)
    }
    #expect(fileStatus("\(elsewhere)/.spoolrun") == nil && fileStatus(spool) == nil, "nothing is left to do")
  }

  /// As where no lock tells that the last get has ended.
  @Test func `a get that has left no job is none that is not done`() async throws {
    try await leave()
    let partial = "\(elsewhere)/.spoolrun/partial"
    for name in names(in: partial) { unlink("\(partial)/\(name)") }
    try await command("status", "--json").exits(0, printing: "503.tar-")
    // It may have leftovers.
    try writeFile("\(partial)/gone.part", [1])
    try await command("clean", directory: elsewhere).exits(0, printing: "gone.part")
  }

  @Test func `status tells of the others where one of them fails`() async throws {
    try await leave()
    _ = rmdir("\(spool)/standing")
    try writeFile("\(spool)/standing", [])
    try await command("status").exits(74, printing: "other503-")
    try await command("status", "other").exits(74, printing: "other503-")
  }

  @Test func `explain, url, wait and retry --server find them too`() async throws {
    try await leave()
    try await command("explain", "other", directory: "/").exits(0, printing: "other503-")
    try await command("wait", "--timeout", "1s", "other", "503.", directory: "/")
      .exits(75, saying: " is not done, 503.tar-")
    try await command("wait", "--timeout", "1s", "--all", directory: "/").exits(75, saying: "jobs still wait or run")

    let (job, place) = (try #require(names(in: "\(elsewhere)/.spoolrun/partial").first), "\(elsewhere)/.spoolrun")
    try await command("retry", "--server", "127.0.0.1", directory: "/")
      .exits(0, saying: "this is about your gets: ")
    #expect((fileStatus("\(place)/partial/\(job)")?.st_mtim.tv_sec ?? .max) <= time(nil))
    try await command("retry", "--server", "h.example", directory: "/").exits(1)

    try await command("url", "503", "https://h/x").exits(1, saying: "several jobs begin so")
    try await command("url", "other", "ftp://h/x", directory: "/").exits(0)
    #expect(try readText("\(place)/new/\(job)").contains("url: ftp://h/x\n"))
  }

  @Test func `verify and explain know what a get has fetched whose spool is gone`() async throws {
    #expect(
      try await get("--crc32", hex8(independentCRC32(Array("payload\n".utf8))), server.url("/a")).status == .exited(0))
    try await get(server.url("/b?token=s3cret")).exits(0)
    #expect(fileStatus(spool) == nil)
    try await command("verify").exits(0)
    let story = try await command("explain", "b")
    #expect(story.output.contains("b: fetched 20") && story.output.contains(" from \(server.url("/b")); "), "\(story)")
    try writeFile("\(here)/a", "pay1oad\n")
    try await command("verify", "b", "./a").exits(1, printing: "a: changed: ")
    try await command("verify", "b").exits(0)
    try #require(mkdir(elsewhere, 0o755) == 0 && rename("\(here)/b", "\(elsewhere)/b") == 0)
    try await command("verify", "-d", elsewhere, "b").exits(0)
    try await command("verify", "-d", elsewhere, "a").exits(1, printing: "a: missing\n")
    try #require(rename("\(elsewhere)/b", "\(here)/b") == 0)
    try await command("verify", "a", "c").exits(1, saying: "c: nothing of this name")
    // From elsewhere now: what was noted of the former file counts no more.
    try await get("--overwrite", "-o", "a", server.url("/other")).exits(0)
    try await command("verify").exits(0)
    #expect(try await command("explain", "a").output.split(separator: "\n").count == 1)
    try #require(unlink("\(here)/b") == 0)
    #expect(try await command("verify").output.contains("b: missing"))
    try await command("clean").exits(0, printing: "forgot b: ")
    try await command("verify").exits(0)
  }

  /// One of them below a directory, all with a digest.
  private func getList() async throws -> ScriptedServer {
    let server = try simpleServer()
    let digest = hex8(independentCRC32(Array("payload\n".utf8)))
    try writeFile("\(home.path)/list.sfv", "a \(digest)\nb \(digest)\nd/c \(digest)\n")
    let got = try await get("--from", "../list.sfv", "--base", server.url("/"))
    #expect(got.status == .exited(0) && fileStatus(spool) == nil, "\(got)")
    return server
  }

  @Test func `verify --refetch gets what is wrong again, and nothing else, as its receipt says`() async throws {
    let server = try await getList()
    try writeFile("\(here)/a", "pay1oad\n")
    try #require(chmod("\(here)/a", 0o600) == 0 && unlink("\(here)/d/c") == 0)
    try await command("verify").exits(1, saying: "`spoolrun verify --refetch`")
    #expect(server.requests.count == 3)
    let mended = try await command("verify", "--refetch")
    #expect(mended.status == .exited(0) && server.requests.count == 5, "\(mended)")
    #expect(mended.output.contains("d/c: missing\n") && mended.output.contains("d/c: fetched again\n"), "\(mended)")
    #expect(try bytes("a") == Array("payload\n".utf8) && bytes("d/c") == Array("payload\n".utf8))
    #expect(fileStatus("\(here)/a").map { $0.st_mode & 0o777 } == 0o600)
    #expect(try await command("verify").status == .exited(0) && fileStatus(spool) == nil)
  }

  @Test func `an empty name is that of no file`() async throws {
    let server = try await getList()
    try writeFile("\(here)/a", [1])
    let result = try await command("verify", "--refetch", "")
    #expect(result.status == .exited(1) && result.output == "" && server.requests.count == 3, "\(result)")
    #expect(try await command("explain", "").output == "" && bytes("a") == [1])
  }

  @Test func `verify --refetch takes nothing else than what was fetched`() async throws {
    let asked = Counter()
    let server = try ScriptedServer { _, reply in
      try reply.respond("200 OK", body: Array(asked.next() == 1 ? "payload\n".utf8 : "pay2oad\n".utf8))
    }
    try await get(server.url("/a")).exits(0)
    let damaged = Array("pay1oad\n".utf8)
    try writeFile("\(here)/a", damaged)
    try await command("verify", "--refetch", "\(here)/a", directory: "/").exits(1, saying: "mismatch")
    #expect(try bytes("a") == damaged && server.requests.count > 1)
  }

  @Test(arguments: ["?token=s3cret", "s3cret@", ""])
  func `verify --refetch asks nobody without what is not noted, and tells the command that asks with it`(
    secret: String
  ) async throws {
    let url = secret.contains("@") ? server.url("/a").replacing("//", with: "//\(secret)") : server.url("/a") + secret
    let header = secret == "" ? ["--header", "X-Key: s3cret"] : []
    try await start(header + [url]).result().exits(0)
    let noted = try names(in: "\(personal)/got").map {
      try readText("\(personal)/got/\($0)")
    }
    #expect(noted.count == 1 && !noted[0].contains("s3cret"))
    try writeFile("\(here)/a", "pay1oad\n")
    let result = try await command("verify", "--refetch", "\(here)/a", directory: "/")
    #expect(result.status == .exited(1) && server.requests.count == 1, "\(result)")
    let told = try #require(result.output.firstMatch(of: /`spoolrun (get .*) URL` gets it again/)?.1, "\(result)")
    #expect(told.contains(" --crc32 \(hex8(independentCRC32(Array("payload\n".utf8)))) "), "\(told)")
    let again = try startSpoolrun(told.split(separator: " ").map(String.init) + [url], environment: environment)
    try await again.result().exits(0)
    #expect(try bytes("a") == Array("payload\n".utf8) && server.requests.count == 2)
  }

  /// Of a disk that is not mounted, nothing is there, and nothing goes to where it was mounted.
  @Test func `verify --refetch gets nothing into a directory that has none of its files, unless that is named`()
    async throws
  {
    try #require(mkdir(elsewhere, 0o755) == 0)
    for name in ["a", "b"] {
      try await get(server.url("/\(name)")).exits(0)
      try await get("-o", "../elsewhere/\(name)", server.url("/\(name)")).exits(0)
    }
    for path in ["\(here)/a", "\(here)/b", "\(elsewhere)/a"] { try #require(unlink(path) == 0) }
    let both = try await command("verify", "--refetch", here, elsewhere, directory: "/")
    #expect(both.status == .exited(1) && names(in: here) == [] && names(in: elsewhere) == ["a", "b"], "\(both)")
    #expect(both.errors.contains("\(here): none of these files is there: if their disk is mounted"), "\(both)")
    #expect(try await command("verify", "--refetch").errors.contains("if their disk is mounted, name them"))
    let named = try await command("verify", "--refetch", "\(here)/a", elsewhere, directory: "/")
    #expect(named.status == .exited(0) && names(in: here) == ["a"], "\(named)")
  }

  /// The text says more than what is noted of a get that is over.
  @Test func `verify --refetch of a file whose spool is there keeps the text of its job`() async throws {
    let server = try ScriptedServer { request, reply in
      guard request.target == "/a?token=s3cret", request.value("X-Key") == "k" else {
        return try reply.respond("503 Service Unavailable", body: [])
      }
      try reply.respond("200 OK", body: Array("payload\n".utf8))
    }
    #expect(
      try await get("--once", "--header", "X-Key: k", server.url("/a?token=s3cret"), server.url("/b")).status
        == .exited(75))
    for round in 1...2 {
      try writeFile("\(here)/a", "pay\(round)oad\n")
      let result = try await command("verify", "--refetch", "here/a", directory: home.path)
      #expect(try result.status == .exited(0) && bytes("a") == Array("payload\n".utf8), "\(result)")
      let text = try readText("\(spool)/done/\(names(in: "\(spool)/done")[0])")
      #expect(text.split(separator: "\n").count { $0 == "header: X-Key: k" } == 1, "\(text)")
      #expect(text.split(separator: "\n").count { $0.hasPrefix("overwrite:") } == 1, "\(text)")
    }
  }

  @Test func `paths of files and directories are known from anywhere, and several strangers are told once`()
    async throws
  {
    _ = try await getList()
    for name in ["here", "here/d", "here/d/c", "here/a", "\(here)/b"] {
      let sound = try await command("verify", "-v", name, directory: home.path)
      #expect(sound.status == .exited(0) && sound.output.contains("\(here)/"), "\(name): \(sound)")
      #expect(sound.output.split(separator: "\n").count == (name == "here" ? 3 : 1), "\(name): \(sound)")
    }
    let story = try await command("explain", "here/d/c", directory: home.path)
    #expect(story.status == .exited(0) && story.output.hasPrefix("d/c: fetched 20"), "\(story)")
    let strangers = try await command("verify", "x", "y", "z")
    #expect(strangers.status == .exited(1) && strangers.errors.split(separator: "\n").count == 1, "\(strangers)")
    #expect(strangers.errors.contains("x: nothing of this name was fetched here, nor of 2 others"), "\(strangers)")
    // What a spool beside the files still has.
    try await get("--once", server.url("/e"), server.url("/503")).exits(75)
    let left = try await command("verify", "-v", "here/e", "here/a", directory: home.path)
    #expect(left.status == .exited(0) && left.output.split(separator: "\n").count == 2, "\(left)")
  }

  @Test func `get --overwrite leaves alone what is there with its declared digest`() async throws {
    let server = try await getList()
    try writeFile("\(here)/a", "pay1oad\n")
    let mended = try await get("--overwrite", "--from", "../list.sfv", "--base", server.url("/"))
    #expect(mended.status == .exited(0) && server.requests.count == 4, "\(mended)")
    #expect(try bytes("a") == Array("payload\n".utf8))
    #expect(try await get("--overwrite", server.url("/b")).status == .exited(0) && server.requests.count == 5)
  }

  @Test func `verify checks the files of gets that have more to do`() async throws {
    try await get("--once", server.url("/a"), server.url("/b"), server.url("/503")).exits(75)
    let sound = try await command("verify", "-v", directory: "/")
    #expect(sound.status == .exited(0) && sound.output.split(separator: "\n").count == 2, "\(sound)")
    try writeFile("\(here)/a", [1])
    try await command("verify", directory: "/").exits(1, printing: ": changed: a: ")
    try await command("verify", "b", directory: "/").exits(0)
    try await command("verify", "--refetch", "a", directory: "/").exits(1)
    try await get("--once").exits(75)
    #expect(try bytes("a") == Array("payload\n".utf8))
  }

  /// The last command of a get takes the spool away.
  @Test(arguments: [true, false])
  func `wait sees the end of a get`(isDone: Bool) async throws {
    let gate = try Gate()
    let server = try ScriptedServer { _, reply in
      try reply.stall(until: gate)
      try reply.respond("200 OK", body: [1])
    }
    let getting = try start(["--timeout", "1h", server.url("/a")])
    try await waitUntil("it runs") { names(in: "\(spool)/cur").count == 1 }
    let waiting = try startSpoolrun(["wait", "a-"], environment: environment, directory: "/")
    let all = try startSpoolrun(["wait", "--all"], environment: environment, directory: "/")
    try await waitUntil("both have looked") {
      [waiting, all].allSatisfy { command in
        let place = try? readFile("/proc/\(command.processID)/wchan")
        return place.map { String(decoding: $0, as: UTF8.self).contains("nanosleep") } ?? false
      }
    }
    if isDone { gate.open() } else { try await command("cancel", "a-").exits(0) }
    _ = try await getting.result()
    #expect(fileStatus(spool) == nil)
    try await waiting.result().exits(isDone ? 0 : 1)
    try await all.result().exits(0)
  }

  /// Its last command takes it away while another command is about to look. That one waits for room in its pipe.
  @Test func `a spool that goes meanwhile is passed over`() async throws {
    try await leave()
    let lines = """
      mkfifo ../pipe; exec 3<>../pipe; head -c 65536 /dev/zero >&3
      '\(try productPath("spoolrun"))' status >&3 & status=$!
      until grep -q pipe_write /proc/$status/wchan; do sleep 0.05; done
      rm -r ../elsewhere/.spoolrun; cat <&3 >../out & reader=$!
      wait $status; echo "status $?"; kill $reader
      """
    let variables = testEnvironment.merging(environment) { $1 }.merging(["SPOOLRUN_SPOOL": ""]) { $1 }
    let result = try await run(["/bin/bash", "-c", lines], environment: variables, directory: here)
    #expect(result.output == "status 0\n" && result.errors == "", "\(result)")
  }

  @Test func `names are looked for in the spools that are there`() throws {
    let (gone, other) = (try TemporarySpool(), try TemporarySpool())
    try other.drop("ab", "https://host/ab\n")
    let spools = try [gone, other].map { files in
      try Spool(files.root, owner: WorkerID(host: "h", process: 1, tag: 1), boot: "b", isBesideFiles: true)
    }
    for directory in Directory.allCases { _ = rmdir(gone.path(directory.rawValue)) }
    let jobs = try MeantJobs.by(Array("a".utf8), in: spools, Directory.ofJobs)
    #expect(jobs.index == 1 && jobs.names == [FileName("ab")] && jobs.doubt == nil)
    let none = try MeantJobs.by(Array("a".utf8), in: [spools[0]], Directory.ofJobs)
    #expect(try none.names == [FileName("a")] && !none.isAnyThere())
    try JobsWaitedFor.wait(for: [(spools[0], nil)])
  }

  @Test(arguments: ["", "old", "new"])
  func `after url, the get goes on with the new URL`(command again: String) async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("503 Service Unavailable", body: []) }
    let other = try ScriptedServer { _, reply in try reply.respond("200 OK", body: [1]) }
    try await get("--once", server.url("/old"), server.url("/other")).exits(75)
    try await command("url", "old", other.url("/new")).exits(0)
    let result =
      switch again {
      case "old": try await get("--once", server.url("/old"))
      case "new": try await get("--once", "-o", "old", other.url("/new"))
      default: try await get("--once")
      }
    #expect(result.status == .exited(again == "" ? 75 : 0), "\(result)")
    #expect(result.errors.contains("old: goes on with the URL that") == (again == "old"), "\(result)")
    #expect(try bytes("old") == [1] && names(in: here) == ["old"])
    #expect(try await get("--once", server.url("/old")).errors.contains("old: is there already"))
    #expect(waiting(here) == 1 && names(in: "\(spool)/done").count == 1 && names(in: "\(spool)/new") == [])
  }

  @Test func `names by which no get has a job are told in one line`() async throws {
    try await leave()
    let result = try await command("verify", "x", "y", "z", directory: "/")
    #expect(result.status == .exited(1) && (result.errors + result.output).contains("x: nothing of this"), "\(result)")
    #expect(result.output == "0 sound\n" || result.output == "", "\(result)")
    #expect(result.errors.split(separator: "\n").count { !$0.contains("sound") } == 1, "\(result)")
  }

  @Test func `a spool that is named, or called spool, comes first`() async throws {
    try await leave()
    try await spoolrun("init", "\(here)/spool").exits(0)
    try await command("hold", "503.tar").exits(1)
    try await command("hold", "--spool", ".spoolrun", "503.tar").exits(0)
    #expect(names(in: "\(spool)/hold").count == 1)
    try await command("cancel", "--spool", ".spoolrun/", "--all", "--yes").exits(0)
    #expect(fileStatus(spool) == nil, "as for one that is not named")
  }

  /// Where there can be no spool beside the files.
  @Test func `get alone goes on with what the person's own spool has of the directory`() async throws {
    try writeFile(spool, [1])
    let server = try ScriptedServer { request, reply in
      // For so long that no command makes the next attempt by itself, however slow it is.
      if request.nth == 1 {
        return try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
      }
      try reply.respond("200 OK", body: [1])
    }
    try await get("--once", server.url("/a")).exits(75)
    try await get("--once", "-o", "../").exits(64, saying: "nothing here to go on with")
    let result = try await get("--once")
    #expect(result.status == .exited(0) && names(in: here) == ["a"], "\(result)")
    try await command("explain", "a-", directory: "/").exits(0, printing: "done")
    #expect(try await command("status").status == .exited(66), "nothing is left to do")
  }

  @Test func `a directory that was moved is to be moved back`() async throws {
    try await leave()
    let moved = "\(home.path)/moved"
    try #require(rename(here, moved) == 0)
    let status = try await command("status", directory: moved)
    #expect(
      status.errors.contains("\(moved)/.spoolrun is left out: ") && status.errors.contains("move the directory back"),
      "\(status)")
    #expect(status.errors.contains("\(spool) is left out: its directory is gone"), "\(status)")
    #expect(status.output.contains("other503-"), "\(status)")
    try await command("get", directory: moved).exits(64, saying: "was made in \(here); move")
    try await command("get", server.url("/a"), directory: moved).exits(0, saying: "was made in \(here); move")
    try #require(rename(moved, here) == 0)
    let back = try await command("status")
    #expect(back.errors == "" && back.output.contains("503.tar-"), "\(back)")
    let note = try #require(status.errors.firstMatch(of: /`rm ([^`]*)`/)?.1)
    #expect(names(in: "\(personal)/gets").map { "\(personal)/gets/\($0)" }.contains(String(note)))
  }

  @Test func `the beginning of a name is enough if no other begins so, and patterns mean all`() async throws {
    try await leave()
    try await command("hold", "503").exits(1, saying: "503: several jobs begin so: 503-")
    #expect(waiting(here) == 2)
    try await command("hold", "503.").exits(0)
    #expect(names(in: "\(spool)/hold").count == 1 && waiting(here) == 1)
    try await command("release", "503*").exits(0)
    #expect(names(in: "\(spool)/new").count == 1)
    try await command("hold", "x*").exits(1, saying: "x*: no such job")
  }

  /// As on a disk that is gone, or in a directory that may no longer be entered.
  @Test func `one that cannot be opened is named, and the others are shown`() async throws {
    try await leave()
    let place = "/" + String(repeating: "x", count: 300)
    try writeFile("\(personal)/gets/0", "inode=1 token=a directory=\(place)\n")
    let status = try await command("status").exits(0, printing: "other503-")
    #expect(status.errors.contains("\(place)/.spoolrun is left out: "), "\(status)")
  }

  /// What is not known to be the person's own is not touched.
  @Test func `a spool from elsewhere is none of the person's`() async throws {
    try await leave()
    try await runTool(["/bin/cp", "-a", ".spoolrun", "../copy"], directory: here)
    try #require(rename(spool, "\(here)/was") == 0 && rename("\(home.path)/copy", spool) == 0)
    let status = try await command("status")
    #expect(!status.output.contains("503.tar-") && status.output.contains("other503-"), "\(status)")
  }
}
