import Glibc
import TestSupport
import Testing

/// Gestures without a worker: nothing but moves of files.
@Suite struct GestureCommandTests {
  private let scene: Scene

  init() throws { scene = try Scene() }

  /// The table of spool(5), Steering: to which directory a job goes from which; "" if it goes for good.
  private static let moves = [
    "hold": ["new": "hold", "urgent": "hold", "cur": "hold", "partial": "hold"], "release": ["hold": "new"],
    "retry": ["failed": "new", "partial": "partial"], "prioritise": ["new": "urgent", "partial": "urgent"],
    "cancel": ["new": "", "urgent": "", "cur": "", "partial": "", "hold": "", "failed": ""],
  ]
  /// Where the wish is fulfilled already. From any other directory it is refused.
  private static let settled = [
    "hold": ["hold"], "release": ["new", "urgent", "cur", "partial"], "retry": ["new", "urgent", "cur"],
    "prioritise": ["urgent", "cur"], "cancel": [],
  ]

  /// A name may look like another job's claim.
  @Test func aJobThatIsCalledLikeAClaim() async throws {
    let text = Array("https://a.example/x\n".utf8)
    for claim in ["app:host.1.0000000a", "app:1.2.3:host.2.0000000b"] {
      try scene.spool.write("cur/\(claim)", text)
    }
    try await scene.spoolrun("cancel", "cur/app:1.2.3").exits(0)
    #expect(scene.spool.names("cur") == ["app:host.1.0000000a"])
    try await scene.spoolrun("cancel", "cur/app:host.1.0000000a").exits(0)
    #expect(scene.spool.names("cur") == [])
    // Whoever put that there, it is shown.
    try scene.spool.write("cur/x:host.\u{301}1.\u{301}t", text)
    try await scene.spoolrun("status").exits(0)
  }

  /// As `add` and `status` print it in a terminal.
  @Test func `a job goes by its name as it is shown as well`() async throws {
    let text = Array("https://a.example/x\n".utf8)
    for name in ["x\u{9B}y", "x\u{9B}yz", "a\\b"] { try scene.spool.write("new/\(name)", text) }
    for shown in ["x\\xc2\\x9by", "a\\x5cb"] {
      #expect(try await scene.spoolrun("status", shown).output.contains(shown))
      try await scene.spoolrun("cancel", shown).exits(0)
    }
    #expect(scene.spool.names("new") == ["x\u{9B}yz"])
  }

  @Test func `a job goes by the path of its file as well, in this spool`() async throws {
    let other = try Scene()
    let text = Array("https://a.example/x\n".utf8)
    try #require(symlink(scene.spool.root, scene.spool.path("link")) == 0)
    for path in [scene.spool.path("failed/x"), scene.spool.path("link/failed/x"), scene.spool.path("new/../failed/x")] {
      for place in [scene.spool.path("failed/x"), other.spool.path("failed/x")] { try writeFile(place, text) }
      try await scene.spoolrun("cancel", other.spool.path("failed/x")).exits(1)
      #expect(try await scene.spoolrun("cancel", path).status == .exited(0), "\(path)")
      #expect(scene.spool.names("failed") == [] && other.spool.names("failed") == ["x"])
    }
  }

  /// Neither out of a directory, nor to what stands beside jobs.
  @Test(arguments: [
    ["cancel", "failed/../done/x"], ["cancel", "failed/../../outside"], ["cancel", "partial/x.part"],
    ["hold", "partial/x.part"], ["retry", "partial/x.part"], ["retry", "failed/y.record"], ["cancel", ""],
    ["hold", "new/.."], ["cancel", "failed/sub/x"],
  ])
  func `what is no job stays`(arguments: [String]) async throws {
    let text = Array("https://a.example/x\n".utf8)
    try #require(mkdir(scene.spool.path("failed/sub"), 0o700) == 0)
    let record = Array("failed: 2026-11-21T03:00:00Z attempt=0 class=permanent code=malformed at=0 reason=x\n".utf8)
    let files = [
      "done/x": text, "../outside": text, "failed/sub/x": text, "failed/y.record": record, "partial/x.part": text,
    ]
    for (path, bytes) in files { try scene.spool.write(path, bytes) }
    let result = try await scene.spoolrun(arguments)
    #expect(result.status == .exited(1) && result.errors != "", "\(result)")
    for (path, bytes) in files { #expect(try readFile(scene.spool.path(path)) == bytes, "\(path)") }
  }

  @Test(arguments: ["hold", "release", "retry", "prioritise", "cancel"])
  func `each gesture moves what it should, and nothing else`(gesture: String) async throws {
    let (moves, settled) = (Self.moves[gesture] ?? [:], Self.settled[gesture] ?? [])
    let text = Array("https://a.example/x\n".utf8)
    func place(_ state: String) -> String { "\(state)/x-\(state)" + (state == "cur" ? ":host.1.0000000a" : "") }
    for state in TemporarySpool.states {
      try scene.spool.write(place(state), text)
      try setModificationTime(scene.spool.path(place(state)), secondsFromNow: 5000)
      try scene.spool.write("partial/x-\(state).part", [1, 2, 3])
    }
    let lawful = TemporarySpool.states.filter { moves[$0] != nil || settled.contains($0) }
    let refused = TemporarySpool.states.filter { !lawful.contains($0) }.map { "x-\($0)" }
    let result = try await scene.spoolrun([gesture] + lawful.map { "x-\($0)" }).exits(0)
    #expect(result.errors.isEmpty, "\(result)")
    let refusal = try await scene.spoolrun([gesture] + refused).exits(1)
    for job in refused { #expect(refusal.errors.contains("spoolrun: \(job): "), "\(refusal)") }
    for state in TemporarySpool.states {
      let target = moves[state].map { "\($0)/x-\(state)" } ?? place(state)
      let isGone = moves[state] == ""
      #expect(scene.spool.places(of: "x-\(state)") == (isGone ? [] : [target]))
      if !isGone { #expect(try readFile(scene.spool.path(target)) == text, "\(target)") }
      #expect(scene.exists("partial/x-\(state).part") == !isGone, "the data goes with the job, and else stays")
    }
    let isDue = fileStatus(scene.spool.path("partial/x-partial")).map { $0.st_mtim.tv_sec <= time(nil) }
    #expect(isDue == ["retry": true, "release": false][gesture])
  }

  @Test func `what is missing is told, the rest is done`() async throws {
    try scene.spool.drop("a", "https://a.example/x\n")
    try scene.spool.drop("b", "https://a.example/x\n")
    let result = try await scene.spoolrun("hold", "a", "nowhere", "b").exits(1)
    #expect(result.errors == "spoolrun: nowhere: no such job\n")
    #expect(scene.spool.names("hold") == ["a", "b"])
    try await scene.spoolrun("hold").exits(64)
    try await scene.spoolrun("hold", "--all", "spool").exits(64, saying: "name the spool with --spool")
    try await scene.spoolrun("cancel", "--all", "--failed").exits(64, saying: "cannot be used together")
  }

  /// As of a file that its worker could not read.
  @Test(arguments: ["retry", "url"])
  func `what was no job leaves no record when it is tried again`(command: String) async throws {
    let scene = try Scene.echoing()
    try scene.spool.write("failed/x", "\(scene.server.url("/x"))\n")
    let record =
      "failed: 2026-01-02T03:04:05Z attempt=0 class=permanent code=malformed at=0 reason=\"cannot be read\"\n"
    try scene.spool.write("failed/x.record", record)
    let arguments = command == "url" ? ["url", "x", scene.server.url("/x")] : ["retry", "x"]
    try await scene.spoolrun(arguments).exits(0)
    #expect(scene.spool.names("failed") == [])
    #expect(try await scene.spoolrun("--once", scene.spool.root).status == .exited(0) && scene.isDone("x"))
    try await scene.spoolrun("wait", "--all").exits(0)
  }

  @Test func `a link in partial is no job to retry, and the next one is`() async throws {
    try #require(symlink("nowhere", scene.spool.path("partial/link")) == 0)
    try scene.spool.write("partial/x", "https://a.example/x\n")
    try setModificationTime(scene.spool.path("partial/x"), secondsFromNow: 5000)
    let result = try await scene.spoolrun("retry", "link", "x").exits(1)
    #expect(result.errors == "spoolrun: link: nothing to retry: it is partial/link\n")
    let due = try #require(fileStatus(scene.spool.path("partial/x"))).st_mtim.tv_sec
    #expect(due <= time(nil))
    #expect(try await scene.spoolrun("retry", "--all").status == .exited(0), "of all there are, it is none")
  }

  @Test func `of two jobs of one name the directory says which`() async throws {
    for place in ["new/x", "failed/x"] { try scene.spool.write(place, "https://a.example/x\n") }
    try await scene.spoolrun("cancel", "x").exits(1, saying: "new/x, failed/x")
    #expect(try await scene.spoolrun("retry", "x").status == .exited(1), "never replaces the other")
    #expect(scene.spool.places(of: "x") == ["new/x", "failed/x"])
    try await scene.spoolrun("cancel", "failed/x").exits(0)
    #expect(scene.spool.places(of: "x") == ["new/x"])
  }

  @Test func `a job whose receipt is archived is not the one that begins so`() async throws {
    let text = Array("https://a.example/x\n".utf8)
    for directory in ["done/archive", "done/archive/2026-11"] {
      try #require(mkdir(scene.spool.path(directory), 0o700) == 0)
    }
    for place in ["done/archive/2026-11/data", "failed/data~2"] { try scene.spool.write(place, text) }
    for command in ["cancel", "hold", "retry"] {
      let result = try await scene.spoolrun(command, "data")
      #expect(result.status == .exited(1) && result.errors == "spoolrun: data: no such job\n", "\(result)")
    }
    #expect(try await scene.spoolrun("explain", "data").output.hasPrefix("data: done"))
    try await scene.spoolrun("wait", "data").exits(0)
    #expect(scene.spool.places(of: "data~2") == ["failed/data~2"])
    try await scene.spoolrun("cancel", "data~").exits(0)
  }

  @Test func `names are bytes, and cannot steer a terminal`() async throws {
    let result = try await scene.shell(
      #"""
      name=$(printf 'b\377\033[31m') && printf 'https://a.example/x\n' >"new/$name"
      $spoolrun hold -v "$name" && test -f "hold/$name" && $spoolrun cancel -v "hold/$name"
      """#)
    #expect(result.status == .exited(0), "\(result)")
    #expect(
      result.output == #"""
        new/b\xff\x1b[31m -> hold/b\xff\x1b[31m
        hold/b\xff\x1b[31m removed

        """#)
  }

  @Test func `a job is dropped under the bytes that it was given for a name`() async throws {
    let result = try await scene.shell(
      #"""
      first=$(printf 'a\377') && second=$(printf 'b\376')
      test "$($spoolrun add --name "$first" https://a.example/x)" = "$first" && test -f "new/$first"
      test "$($spoolrun add --name="$second" https://a.example/x)" = "$second" && $spoolrun cancel "$second" >cancelled
      test ! -e "new/$second"
      """#)
    #expect(result.status == .exited(0) && result.output == "", "\(result)")
  }

  @Test func `failed jobs are tried again or removed, all at once`() async throws {
    for name in ["a", "b"] { try scene.spool.write("failed/\(name)", "https://a.example/x\n") }
    try scene.spool.write("failed/a.part", [1])
    mkfifo(scene.spool.path("failed/pipe"), 0o600)
    try scene.spool.write("failed/pipe.record", "failed: 2026-01-02T03:04:05Z attempt=0 code=malformed\n")
    try scene.spool.write("partial/c", "https://a.example/x\n")
    try await scene.spoolrun("retry", "--failed").exits(0)
    #expect(scene.spool.names("new") == ["a", "b"])
    #expect(
      scene.spool.names("failed") == ["a.part", "pipe", "pipe.record"], "no job, and no job's record, is no retry's")
    try await scene.spoolrun("cancel", "--all").exits(0)
    #expect(scene.spool.names("new") + scene.spool.names("partial") == [])
    #expect(scene.spool.names("failed") == [])
  }

  @Test func `the record of what is no job goes with it`() async throws {
    let record = Array("failed: 2026-01-02T03:04:05Z attempt=0 code=malformed\n".utf8)
    // Two names of which only the same first bytes are in the record's.
    let long = ["1", "2"].map { String(repeating: "n", count: 254) + $0 }
    for name in ["pipe", "other"] + long { mkfifo(scene.spool.path("failed/\(name)"), 0o600) }
    try #require(mkdir(scene.spool.path("failed/directory"), 0o700) == 0)
    let shared = "\(String(repeating: "n", count: 248)).record"
    for name in ["pipe.record", "other.record", "directory.record", shared] {
      try scene.spool.write("failed/\(name)", record)
    }
    // A job that is called like a record.
    try scene.spool.write("failed/job.record", Array("https://a.example/x\n".utf8) + record)
    try scene.spool.write("failed/job", Array("https://a.example/x\n".utf8) + record)
    try await scene.spoolrun("cancel", "pipe", "failed/job", long[0]).exits(0)
    try await scene.spoolrun("cancel", "directory").exits(1)
    #expect(
      scene.spool.names("failed")
        == ["directory", "directory.record", "job.record", shared, long[1], "other", "other.record"].sorted())
    try await scene.spoolrun("cancel", long[1]).exits(0)
    #expect(!scene.spool.names("failed").contains(shared))
  }

  @Test(arguments: [
    ["hold", "-dash"], ["hold", "-x"], ["cancel", "-abc"], ["retry", "x", "-host"], ["release", "--", "-x", "-h"],
    ["release", "--dash"], ["add", "--name", "-dash", "http://h/x"], ["add", "-dash"], ["-dash"],
  ])
  func `a name with a dash in front is no option`(arguments: [String]) async throws {
    let result = try await scene.spoolrun(arguments)
    #expect(result.output == "" && result.errors != "", "\(result)")
    guard !arguments.contains("--") else {
      return #expect(result.status == .exited(1) && result.errors.contains("-x: no such job"))
    }
    #expect(result.status == .exited(64) && result.errors.contains("`--` before a name"), "\(result)")
  }

  @Test func `a job whose name has a dash in front is steered as others are`() async throws {
    try await scene.spoolrun("add", "--name=-dash", "https://a.example/x").exits(0)
    for (gesture, place) in [("hold", "hold/-dash"), ("release", "new/-dash")] {
      try await scene.spoolrun(gesture, "--", "-dash").exits(0)
      #expect(scene.spool.places(of: "-dash") == [place])
    }
    try await scene.spoolrun("cancel", "new/-dash").exits(0)
  }

  /// A gesture between the receipt and the move to `done/`; the worker that took the job up again may have died.
  @Test(arguments: [true, false], [true, false])
  func `a job that was held when its payload had just been published is done`(isIntact: Bool, wasTakenUp: Bool)
    async throws
  {
    try scene.spool.write("files/o", isIntact ? payload : payload.reversed())
    let inode = try #require(fileStatus(scene.spool.path("files/o"))).st_ino
    let text = """
      url: \(scene.server.url("/fast"))
      output: o
      started: 2026-01-02T03:04:05Z attempt=1 worker=h.1.0000000a boot=b mirror=1 url=\(scene.server.url("/fast"))
      response: mirror=1 at=0 part=\(inode) size=\(payload.count)
      verified: 2026-01-02T03:04:05Z size=\(payload.count) crc32=\(hex8(independentCRC32(payload))) part=\(inode)
      done: 2026-01-02T03:04:05Z attempts=1 output=o bytes-fetched=\(payload.count) seconds=1

      """
    let requeued = wasTakenUp ? "requeued: 2026-01-02T03:04:06Z\n" : ""
    try scene.spool.write("hold/x", text + requeued)
    try await scene.spoolrun("release", "x")
    try await scene.spool.once(exits: isIntact ? 0 : 1)
    #expect(scene.spool.places(of: "x") == [isIntact ? "done/x" : "failed/x"])
    #expect(try scene.spool.payload("o")?.count == payload.count && scene.server.requests.isEmpty)
  }
}
