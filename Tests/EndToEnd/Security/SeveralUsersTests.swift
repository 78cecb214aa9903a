import Glibc
import TestSupport
import Testing

/// Users without an account: the kernel knows numbers only.
private let (worker, droppers) = (61_001, 61_009)

/// A spool for several users, set up as spool(5) says, with real users: one works, some drop, one of them means harm.
@Suite(
  .enabled("needs root, to be several users, and python3") {
    try await Need.areMet(.users, .program("python3"))
  })
struct SeveralUsersTests {
  /// A spool, and the program where every user can run it.
  private struct SharedSpool {
    let directory: TemporaryDirectory
    let spool: TemporarySpool
    let program: String

    init() async throws {
      directory = try TemporaryDirectory()
      spool = try TemporarySpool(in: directory.path)
      program = "\(directory.path)/spoolrun"
      // What spool(5) says under SEVERAL USERS, with numbers for names.
      let setUp = """
        chmod 755 .; cp "$PROGRAM" spoolrun; chmod 755 spoolrun
        chown -R \(worker):\(worker) spool
        chgrp \(droppers) spool; chmod 750 spool
        chmod 3733 spool/new spool/tmp
        """
      try await runTool(
        ["/usr/bin/env", "PROGRAM=\(try productPath("spoolrun"))", "/bin/sh", "-euc", setUp], directory: directory.path)
    }

    func start(_ user: Int, _ argv: [String]) throws -> RunningCommand {
      let identity = ["--reuid=\(user)", "--regid=\(user)", "--groups=\(user == worker ? worker : droppers)"]
      return try RunningCommand(["/usr/bin/setpriv"] + identity + ["--"] + argv, directory: spool.root)
    }

    func shell(_ user: Int, _ script: String) async throws -> CommandResult {
      try await start(user, ["/bin/sh", "-c", script]).result()
    }
  }

  @Test func jobsOfSeveralUsers() async throws {
    let server = try simpleServer()
    let scene = try await SharedSpool()
    let (spool, program) = (scene.spool, scene.program)
    let (alice, bob) = (61_002, 61_003)
    #expect(
      try await scene.shell(alice, "umask 027; echo '\(server.url("/alice"))' >new/.alice; mv new/.alice new/alice")
        .status == .exited(0))
    for name in ["bob", "bob~2"] {
      let added = try await scene.start(
        bob,
        [program, "add", "--spool", ".", "--name", "bob", "--header", "X: s3cret", "-o", name, server.url("/bob")]
      ).result()
      #expect(added.status == .exited(0) && added.output == "\(name)\n", "\(added)")
    }
    for option in ["--new", "--wait", "--new --from /dev/null"] {
      let line = "exec \(program) add --spool . \(option)"
      try await scene.shell(bob, option.contains("from") ? line : "\(line) \(server.url("/no"))")
        .exits(64, saying: "that you may read")
    }
    // Neither sees, reads, takes or replaces what the other has dropped, nor what became of it.
    let forbidden = [
      "ls new", "cat new/bob", "mv new/bob new/mine", "rm -f new/bob", "echo x >new/bob", "ln new/bob new/mine",
      "ls cur", "ls done", "ls files", "touch cur/x", "touch defaults", "mkdir hooks", "mv new new2",
    ]
    for command in forbidden {
      let tried = try await scene.shell(alice, command)
      #expect(tried.exitStatus != 0 && !tried.output.contains("s3cret"), "\(command): \(tried)")
    }
    let run = try scene.start(worker, [program, "-v", "."])
    try await waitUntil("all are done") { spool.names("done") == ["alice", "bob", "bob~2"] }
    #expect(server.requests(for: "/bob").allSatisfy { $0.value("x") == "s3cret" })
    // The files are the worker's own now: whoever still has a dropped one open changes nothing.
    for name in spool.names("done") {
      #expect(fileStatus(spool.path("done/\(name)")).map { Int($0.st_uid) } == worker)
      #expect((fileStatus(spool.path("done/\(name)"))?.st_mode ?? 0) & 0o777 == 0o600)
    }
    try await run.stop().exits(0)
  }

  /// A shell's lines that drop what is no job, or a harmful one.
  private static func harm(_ server: ScriptedServer) -> String {
    """
    cd new
    mkdir -m 700 directory && echo x >directory/inside
    mkfifo -m 666 fifo; ln -s /etc/shadow symlink; ln -s nowhere dangling; ln -s ../defaults ours
    echo '\(server.url("/x"))' >unreadable; chmod 600 unreadable
    echo '\(server.url("/x"))' >huge; truncate -s 17M huge; chmod 644 huge
    echo 'done: 2026-01-02T03:04:05Z attempts=1 output=x bytes-fetched=1 seconds=1' >forged
    echo '\(server.url("/404"))' >>forged
    chmod 644 forged
    """
  }

  /// A Python program that keeps one job locked and another one leased (flock(2), F_SETLEASE).
  private static func holder(_ server: ScriptedServer) -> String {
    """
    import fcntl, os, signal
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    for name in "locked", "leased":
        file = os.open("new/" + name, os.O_RDWR | os.O_CREAT, 0o666)
        os.write(file, b"\(server.url("/x"))\\n")
        if name == "locked": fcntl.flock(file, fcntl.LOCK_EX)
        else: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.close(os.open("new/.held", os.O_CREAT, 0o666))
    signal.pause()
    """
  }

  /// What a user who may only drop can do to all others' jobs: nothing.
  @Test func oneWhoMeansHarm() async throws {
    let server = try simpleServer()
    let scene = try await SharedSpool()
    let (spool, program) = (scene.spool, scene.program)
    let (alice, mallory) = (61_002, 61_666)
    try await scene.shell(mallory, Self.harm(server)).exits(0)
    // A program that runs, a file that stays locked, and one whose writer never ends.
    let busy = try scene.start(
      mallory, ["/bin/sh", "-c", "cp /bin/sleep new/busy && chmod 777 new/busy && exec new/busy 600"])
    let holding = try scene.start(mallory, ["/usr/bin/python3", "-c", Self.holder(server)])
    defer { for command in [busy, holding] { command.send(signal: SIGKILL) } }
    try await waitUntil("they hold them") {
      fileStatus(spool.path("new/.held")) != nil && fileStatus(spool.path("new/busy"))?.st_mode == S_IFREG | 0o777
    }
    try await scene.shell(alice, "umask 027; echo '\(server.url("/alice"))' >new/alice").exits(0)

    let run = try scene.start(worker, [program, "-v", "--min-free", "1M", "."])
    // The kernel ends a lease that is in somebody's way after 45 s (fcntl(2), lease-break-time): a slow machine sees
    // that job run.
    @Sendable func done() -> [String] { spool.names("done").filter { $0 != "leased" } }
    let judged = ["busy", "dangling", "fifo", "forged", "huge", "ours", "symlink", "unreadable"]
    try await waitUntil("the honest one is done, and the others are judged") {
      done() == ["alice"] && Set(judged).isSubset(of: spool.names("failed"))
    }
    // It goes on, and takes in what comes.
    try await scene.shell(alice, "umask 027; echo '\(server.url("/more"))' >new/more").exits(0)
    try await waitUntil("another honest one is done") { done() == ["alice", "more"] }
    let result = try await run.stop().exits(1)
    #expect(result.errors.contains(" barred job=directory ") && fileStatus(spool.path("new/directory")) != nil)
    for name in judged + ["directory"] {
      let places = ["failed/\(name)", "failed/\(name).record"].filter {
        fileStatus(spool.path($0)).map { $0.st_mode & S_IFMT == S_IFREG && $0.st_size < 1 << 20 } ?? false
      }
      #expect(try places.contains { try spool.lines($0).last?.key == "failed" }, "\(name): \(places)")
    }
    #expect(spool.payloads.filter { $0 != "x" } == ["alice", "more"] && !result.errors.contains("root:"))
    // The next run finds no more than that, and is none the worse.
    let again = try await scene.start(worker, [program, "--once", "."]).result()
    #expect(again.exitStatus == 1 && again.errors.split(separator: "\n").count == 1, "\(again)")
  }

  /// A hard link to a file that the dropper may not even read, as where protected_hardlinks (proc(5)) is off.
  @Test func aHardLinkToAForeignFile() async throws {
    let server = try simpleServer()
    let scene = try await SharedSpool()
    let spool = scene.spool
    var before: [String: stat] = [:]
    for (name, owner) in [("theirs", 0), ("own", worker), ("job", 0)] {
      let path = "\(scene.directory.path)/\(name)"
      let text = name == "job" ? "\(server.url("/x"))\n" : "t0p-secret=0123456789\n"
      try writeFile(path, text)
      try #require(chmod(path, 0o666) == 0 && chown(path, uid_t(owner), uid_t(owner)) == 0)
      try #require(link(path, spool.path("new/\(name)")) == 0)
      before[name] = fileStatus(path)
    }
    let run = try scene.start(worker, [scene.program, "-v", "."])
    try await waitUntil("all are judged") {
      spool.names("failed") == ["own", "theirs"] && spool.names("done") == ["job"]
    }
    let result = try await run.stop()
    #expect(!result.errors.contains("0123456789"), "\(result)")
    for (name, old) in before {
      let path = "\(scene.directory.path)/\(name)"
      let new = try #require(fileStatus(path))
      #expect(
        new.st_size == old.st_size && new.st_mtim.tv_sec == old.st_mtim.tv_sec
          && new.st_mtim.tv_nsec == old.st_mtim.tv_nsec)
      #expect(new.st_uid == old.st_uid && new.st_mode == old.st_mode && new.st_nlink == 1)
    }
  }
}
