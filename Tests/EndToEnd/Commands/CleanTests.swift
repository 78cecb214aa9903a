import Glibc
import Spool
import TestSupport
import Testing

@Suite struct CleanTests {
  private let scene: Scene

  init() throws { scene = try Scene() }

  /// A spool with something of every kind.
  private func litter() throws {
    let spool = scene.spool
    let job = Array("https://a.example/x\n".utf8)
    let record = Array(
      "failed: 2026-01-02T03:04:05Z attempt=0 class=permanent code=malformed at=0 reason=\"no job\"\n".utf8)
    let receipt = """
      verified: 2026-01-02T03:04:05Z size=1 crc32=d3d99e8b part=7
      done: 2026-01-02T03:04:05Z attempts=1 output=
      """
    func put(_ path: String, _ bytes: [UInt8] = [0x41]) throws { try spool.write(path, bytes) }
    for name in ["gone", "waiting", "running", "begun", "held", "failed", "finished"] {
      try put("partial/\(name).part")
    }
    try put("new/waiting", job)
    try put("cur/running:host.1.0000000a", job)
    try put("partial/begun", job)
    try put("hold/held", job)
    try put("failed/failed", job)
    try put("failed/failed.part")
    try put("failed/other.part")
    mkfifo(spool.path("failed/pipe"), 0o600)
    try put("failed/pipe.record", record)
    try put("failed/rm.record", record)
    try setModificationTime(spool.path("failed/rm.record"), secondsFromNow: -60)
    // What it is about is about to be moved there.
    try put("failed/young.record", record)
    try setModificationTime(spool.path("failed/young.record"), secondsFromNow: 3600)
    // Jobs may be called so.
    try put("failed/minutes.record", job + record)
    try put("files/there")
    try put("done/finished", job + Array("\(receipt)there\n".utf8))
    try put("done/missing", job + Array("\(receipt)nowhere\n".utf8))
    try put("tmp/young")
  }

  private static let removed = ["failed/other.part", "failed/rm.record", "partial/finished.part", "partial/gone.part"]

  @Test func `it removes what has no job, and says so first if asked`() async throws {
    try litter()
    let before = filesBelow(scene.spool.root)
    let dry = try await scene.spoolrun("clean", "--dry-run")
    #expect(dry.status == .exited(0) && dry.errors == "", "\(dry)")
    #expect(filesBelow(scene.spool.root) == before)
    let real = try await scene.spoolrun("clean")
    #expect(real.status == .exited(0) && real.errors == "", "\(real)")
    #expect(dry.output.replacing("would remove", with: "removed") == real.output)
    #expect(real.output.contains("done/missing: its file is missing: files/nowhere\n"), "\(real)")
    #expect(filesBelow(scene.spool.root) == before.filter { !Self.removed.contains($0) })
    let again = try await scene.spoolrun("clean")
    #expect(again.output == "done/missing: its file is missing: files/nowhere\n")
  }

  @Test func `receipts go when they are old and it is asked to, payloads never`() async throws {
    try litter()
    try setModificationTime(scene.spool.path("done/finished"), secondsFromNow: -3 * 86_400)
    try await scene.spoolrun("clean", "--keep-done", "4d")
    #expect(scene.spool.names("done") == ["finished", "missing"])
    let result = try await scene.spoolrun("clean", "--keep-done", "2d")
    #expect(result.output.contains("removed done/finished: a receipt older than 2d\n"), "\(result)")
    #expect(scene.spool.names("done") == ["missing"])
    #expect(scene.spool.payloads == ["there"])
    for age in ["", "d", "-1d", "1w", "99999999d", "30", "0", "0d"] {
      #expect(try await scene.spoolrun("clean", "--keep-done=\(age)").status == .exited(64), "\(age)")
    }
  }

  /// As `mv cur/x:OWNER hold/` and `release --all` leave it.
  @Test func `data of a job that still has its owner behind its name stays`() async throws {
    try litter()
    try scene.spool.write("new/gone:host.1.0000000a", "https://a.example/x\n")
    let result = try await scene.spoolrun("clean")
    #expect(result.status == .exited(0) && fileStatus(scene.spool.path("partial/gone.part")) != nil, "\(result)")
  }

  @Test func `data that somebody has locked stays`() async throws {
    try litter()
    try await scene.shell("flock partial/gone.part $spoolrun clean").exits(0)
    #expect(scene.exists("partial/gone.part") && !scene.exists("partial/finished.part"))
    try await scene.shell("flock partial/held.part $spoolrun cancel held").exits(0)
    #expect(scene.exists("partial/held.part") && !scene.exists("hold/held"), "the worker removes it")
  }

  @Test func `a worker removes at its start only what is old`() async throws {
    for path in ["partial/gone.part", "tmp/young", "failed/other.part"] {
      try scene.spool.write(path, [1])
      // Old by its content alone: so `cp -p` leaves a file that was made just now.
      try setModificationTime(scene.spool.path(path), secondsFromNow: -40 * 3600)
    }
    let result = try await scene.spoolrun("run", "--once", "-v")
    #expect(result.status == .exited(0) && !result.errors.contains(" swe"), "\(result)")
    #expect(scene.exists("partial/gone.part") && scene.exists("tmp/young") && scene.exists("failed/other.part"))
  }

  @Test func `old files in tmp go, but for directories and what is ignored`() throws {
    let own = [".clock:host.1.0000000a", ".list:host.1.0000000a", ".owner:host.1.0000000a"]
    for name in ["left", ".gitkeep"] + own { try scene.spool.write("tmp/\(name)", [1]) }
    mkdir(scene.spool.path("tmp/directory"), 0o700)
    let (owner, boot) = WorkerID.current()
    let spool = try Spool(scene.spool.root, owner: owner, boot: boot)
    let usual = Cleanup(spool) { finding in Issue.record("\(finding)") }
    #expect(usual.staleAge == 36 * 3600)
    try usual.run()
    var places: [String] = []
    var cleanup = Cleanup(spool) { finding in places.append(finding.place) }
    cleanup.staleAge = 0
    try cleanup.run()
    #expect(places.sorted() == own.map { "tmp/\($0)" } + ["tmp/left"])
    #expect(scene.exists("tmp/.gitkeep") && scene.exists("tmp/directory"))
  }

  /// Of failed jobs, only that for which `retry` has no use.
  @Test func `data whose output is another file goes, and no other of failed jobs`() async throws {
    let spool = scene.spool
    let record = "failed: 2026-01-02T03:04:05Z attempt=1 class=permanent code="
    for (name, code) in [("taken", "output-exists"), ("missing", "http-404"), ("again", "output-exists")] {
      try spool.write("failed/\(name)", "https://a.example/x\n\(record)\(code) at=1\n")
      try spool.write("partial/\(name).part", [0x41])
    }
    // Another job of the name waits.
    try spool.write("new/again", "https://a.example/x\n")
    let sweep = try await scene.spoolrun("run", "--once", "--gate", "false")
    #expect(spool.names("partial").count == 3, "a worker leaves it: \(sweep)")
    let locked = try await scene.shell("flock partial/taken.part $spoolrun clean")
    #expect(locked.output == "" && scene.exists("partial/taken.part"))
    let result = try await scene.spoolrun("clean")
    #expect(result.output == "removed partial/taken.part: 1 bytes, their job failed with output-exists\n", "\(result)")
    #expect(Set(spool.names("partial")) == ["missing.part", "again.part"] && scene.exists("failed/taken"))
  }

  @Test func `links of get to directories that are gone are removed when no job names them`() async throws {
    let spool = scene.spool
    mkdir(spool.path("roots"), 0o700)
    func link(_ target: String, _ name: String? = nil) -> String {
      let name = name ?? NamedRoots.name(for: target)
      #expect(symlink(target, spool.path("roots/\(name)")) == 0)
      return name
    }
    let (gone, named, kept) = (link("\(nowhere)/gone"), link("\(nowhere)/named"), link("/"))
    let own = link("\(nowhere)/usb", "usb")
    try spool.write("hold/job", "url: https://a.example/x\nroot: \(named)\n")
    let result = try await scene.spoolrun("clean")
    #expect(result.output == "removed roots/\(gone): the directory that it leads to is gone\n", "\(result)")
    #expect(Set(spool.names("roots")) == [named, kept, own])
  }
}
