import Glibc
import TestSupport
import Testing

/// What `add` says that it did, and what it leaves.
@Suite struct AddTests {
  private let scene: Scene

  init() throws { scene = try Scene() }

  @Test(arguments: ["new/x", "cur/x:host.1.0000000a", "partial/x", "hold/x", "failed/x", "done/x"])
  func `--new drops nothing where a job has the name, in any state`(place: String) async throws {
    try scene.spool.write(place, "https://a.example/x\n")
    let result = try await scene.spoolrun("add", "--new", "https://a.example/x")
    #expect(result.status == .exited(0) && result.output == "x\n", "\(result)")
    #expect(result.errors == "spoolrun: x: already there, as \(place); nothing is dropped\n", "\(result)")
    #expect(scene.spool.places(of: "x") == [place])
    let other = try await scene.spoolrun("add", "--new", "https://b.example/x")
    #expect(other.errors.contains("with another URL or output") && scene.spool.places(of: "x") == [place], "\(other)")
    // Without the option it is another job, by the name that it will have at its end as well.
    let again = try await scene.spoolrun("add", "https://a.example/x")
    #expect(again.output == "x~2\n" && scene.spool.names("new").contains("x~2"), "\(again)")
    #expect(
      again.errors
        == "spoolrun: x~2: new, because the name x is taken by a job for the same file (see --new); output: x\n",
      "\(again)")
  }

  @Test func `all jobs are dropped, also if nobody reads their names`() async throws {
    let urls = (1...300).map { "https://a.example/\($0)" }.joined(separator: " ")
    let line = "'\(try productPath("spoolrun"))' add --spool '\(scene.spool.root)' \(urls) | head -n 1"
    let result = try await runTool(["/bin/sh", "-c", line])
    #expect(result.output == "1\n" && scene.spool.names("new").count == 300, "\(result)")
  }

  @Test(arguments: ["new/other", "partial/other", "hold/other", "failed/other", "done/other"])
  func `--new drops nothing where a job or a receipt has the URL and the output`(place: String) async throws {
    try scene.spool.write(place, "url: https://m.example/y\nurl: https://a.example/x\noutput: x\n")
    let result = try await scene.spoolrun("add", "--new", "https://a.example/x")
    #expect(result.output == "other\n" && result.errors.contains("already there, as \(place)"), "\(result)")
    #expect(scene.spool.places(of: "x") == [])
    for arguments in [["https://a.example/x", "-o", "elsewhere/y"], ["https://b.example/x"]] {
      let added = try await scene.spoolrun(["add", "--new", "--name", "n"] + arguments)
      #expect(added.output == "n\n" && added.errors == "", "\(added)")
      try await scene.spoolrun("cancel", "n").exits(0)
    }
  }

  @Test(arguments: ["standing/o", "cur/o:host.1.0000000a", "hold/o", "failed/o"])
  func `a subscription is not the job that --new looks for, and has no end to wait for`(place: String) async throws {
    #expect(mkdir(scene.spool.path("standing"), 0o700) == 0)
    try scene.spool.write(place, "https://a.example/x\nevery: 1h\n")
    try await scene.spoolrun("add", "--new", "--wait", "--name", "o", "https://a.example/x")
      .exits(64, saying: "o is a subscription, which has no end")
    #expect(try await scene.spoolrun("add", "--new", "https://a.example/x").output == "x\n")
    try writeFile("\(scene.tools)/list", "https://a.example/x\noutput: y\n")
    try scene.spool.drop("o2", "https://a.example/x\noutput: y\nevery: 1h\n")
    #expect(try await scene.spoolrun("add", "--new", "--from", "\(scene.tools)/list").output == "1 added\n")
  }

  @Test func `--new of what is new drops it, and the second time not`() async throws {
    for _ in 1...2 {
      #expect(try await scene.spoolrun("add", "--new", scene.server.url("/x")).output == "x\n")
      #expect(scene.spool.places(of: "x") == ["new/x"])
    }
    try await scene.spool.once(exits: 0)
    let done = try await scene.spoolrun("add", "--new", scene.server.url("/x"))
    #expect(done.errors.contains("already there, as done/x") && scene.spool.names("new") == [], "\(done)")
  }

  @Test func `--new waits until another command has dropped what it drops`() async throws {
    let spool = try TemporarySpool()
    let lock = open(spool.path("tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(lock) }
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    let command = try startSpoolrun(["add", "--spool", spool.root, "--new", "https://a.example/x"])
    let descriptors = "/proc/\(command.processID)/fd"
    let inode = try #require(fileStatus(spool.path("tmp"))).st_ino
    try await waitUntil("it waits") {
      names(in: descriptors).contains { name in
        var status = stat()
        return stat("\(descriptors)/\(name)", &status) == 0 && status.st_ino == inode
      }
    }
    try spool.write("new/x", "https://a.example/x\n")
    try #require(flock(lock, LOCK_UN) == 0)
    let result = try await command.result()
    #expect(result.errors.contains("already there, as new/x"), "\(result)")
    #expect(spool.names("new") == ["x"])
  }

  @Test(arguments: [["--new", "https://a.example/x"], ["--from", "-"]])
  func `that another command keeps it waiting is told`(arguments: [String]) async throws {
    let spool = try TemporarySpool()
    let lock = open(spool.path("tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    let (list, log) = (spool.path("list"), spool.path("log"))
    try writeFile(list, "https://a.example/x\n")
    let command = try startSpoolrun(
      ["add", "--spool", spool.root] + arguments, prefix: ["/bin/sh", "-c", "exec \"$@\" 2>\(log) <\(list)", "sh"])
    defer { command.send(signal: SIGKILL) }
    try await waitUntil("it says so") {
      ((try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? "").contains("waiting until another command")
    }
    close(lock)
    #expect(try await command.result().status == .exited(0) && spool.names("new") == ["x"])
  }

  @Test func `URLs of different names are several files, and of one name mirrors`() async throws {
    let urls = ["/a", "/b", "/a?mirror"].map { scene.server.url($0) }
    for option in ["--name=n", "--remote-name", "--size=5", "--resolve=x"] {
      let refused = try await scene.spoolrun(["add", option] + urls)
      #expect(refused.status == .exited(64) && refused.output == "", "\(refused)")
    }
    let last = try await scene.spoolrun(["add"] + urls + ["ftp://h/c"])
    #expect(last.status == .exited(64) && scene.spool.names("new") == [], "\(last)")
    let result = try await scene.spoolrun(["add", "-o", "d/"] + urls)
    #expect(result.output == "a\nb\n" && result.errors == "", "\(result)")
    let text = try scene.spool.text("new/a")
    #expect(text == "url: \(urls[0])\nurl: \(urls[2])\noutput: d/\n")
    let mirrors = try await scene.spoolrun(["add", "-o", "one"] + urls)
    #expect(mirrors.output == "one\n" && scene.spool.names("new") == ["a", "b", "one"], "\(mirrors)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `in a terminal it says the name and the output`() async throws {
    let spool = try TemporarySpool()
    let result = try await runInTerminal(
      "\(try productPath("spoolrun")) add --spool \(spool.root) --name n -o d/x https://a.example/x")
    #expect(result.output.hasPrefix("n\r\nspoolrun: n: new; output: d/x\r\nspoolrun: no worker runs: "), "\(result)")
  }

  @Test func `a scheme that the spool's worker does not allow is refused`() async throws {
    try await scene.spoolrun("add", "ftp://h/x").exits(64, saying: "the scheme ftp is not enabled")
    #expect(scene.spool.names("new") == [] && scene.spool.names("tmp") == [])
    // The last worker that started counts.
    try await scene.spoolrun("--once", "--protocols", "https,ftp").exits(0)
    #expect(try await scene.spoolrun("add", "ftp://h/x").output == "x\n")
    try await scene.spoolrun("add", "http://h/x").exits(64)
    try await scene.spoolrun("cancel", "x")
    try await scene.spool.once(exits: 0)
    try await scene.spoolrun("add", "ftp://h/x").exits(64)
    #expect(!scene.exists("protocols") && scene.spool.names("tmp") == [])
  }
}
