import Glibc
import Synchronization
import TestSupport
import SystemPackage
import Testing

@testable import Spool

/// A person's move by link and unlink that ended between the two: the job has two names, and remains one job.
@Suite struct HalfMovedTests {
  private func halfMoved(_ from: String, _ to: String) throws -> Fixture { try double("\(from)/a", "\(to)/a") }

  /// Whichever way it went, the job stays paused.
  @Test(arguments: [Directory.new, .urgent, .partial]) func `between a waiting job and hold`(from: Directory) throws {
    let fixture = try halfMoved(from.rawValue, "hold")
    // Somebody may be about to remove either name.
    for (now, left) in [(Timestamp.now(), ["hold/a", "\(from.rawValue)/a"]), (.now() + 11, ["hold/a"])] {
      guard case .unavailable = try fixture.spool.outcome("a", from: from, at: now) else {
        throw Unexpected("claimed, or taken for gone")
      }
      #expect(fixture.files.places(of: "a").sorted() == left)
    }
  }

  /// Two people move it at the same time: it keeps a name.
  @Test func `a move that is under way is not taken for one that was cut`() throws {
    let fixture = try halfMoved("new", "hold")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    guard case .restless = try Steering(fixture.spool).perform(.hold, FileName("a")) else { throw Unexpected("moved") }
    #expect(fixture.files.places(of: "a").sorted() == ["hold/a", "new/a"])
  }

  @Test func `a retry`() throws {
    let fixture = try halfMoved("failed", "new")
    _ = try fixture.claim("a")
    #expect(fixture.names("failed") == [] && fixture.names("new") == [])
  }

  @Test func `the same command again completes it`() throws {
    let fixture = try halfMoved("new", "hold")
    fixture.spool.clockOffset.store(11, ordering: .relaxed)
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(.hold, FileName("a")).movedTo()
    #expect(fixture.files.places(of: "a") == ["hold/a"])
  }

  /// A worker gives the job up between the two steps.
  @Test func `of two moves at the same moment one counts`() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "new/a") { try files.move("new/a", "failed/a~2") }
    }
    try fixture.write("new/a", "http://host/a\n")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(.hold, FileName("a"))
    #expect(files(of: fixture) == ["failed/a~2"])
  }

  enum Moment: CaseIterable { case look, rename, putBack }

  /// A worker takes the job between the two steps, and another one is dropped by its name.
  @Test(arguments: Moment.allCases) func `another job that has just got the name keeps one`(moment: Moment) throws {
    let fixture = try Fixture { files in
      Probe { call in
        func drop(_ text: String) { recordingErrors { try writeFile(files.path("new/a"), Array(text.utf8)) } }
        switch (call.kind, moment) {
        case (.stat, .look) where call.path == "new/a" && fileStatus(files.path("hold/a")) != nil,
          (.rename, .rename) where call.path.hasPrefix("new/a "),
          (.rename, .putBack) where call.path.hasPrefix("new/a "):
          if rename(files.path("new/a"), files.path("done/a")) == 0 { drop("http://host/other\n") }
        // And a third one, while the other is looked at.
        case (.stat, .putBack) where call.path.hasPrefix("tmp/moved"): drop("http://host/third\n")
        default: break
        }
        return nil
      }
    }
    try fixture.write("new/a", "http://host/a\n")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(.hold, FileName("a"))
    #expect(fixture.names("tmp") == [])
    let names = moment == .putBack ? ["new/a", "new/a~2"] : ["new/a"]
    #expect(files(of: fixture) == names + ["hold/a", "done/a"])
    #expect(try fixture.text(names[names.count - 1]) == "http://host/other\n")
  }

  // MARK: where the new name has a number

  private static let claim = "cur/a:alpha.7.00000009"

  /// A file with two names.
  private func double(_ one: String, _ other: String, kind: FileSystemKind? = nil) throws -> Fixture {
    let fixture = try Fixture(kind: kind)
    try fixture.write(one, "http://host/a\n")
    try fixture.link(one, other)
    return fixture
  }

  /// The kernel refuses a new name that exists before it asks the file system, which would refuse the rename.
  @Test func `a claim that has its new name already keeps it`() throws {
    let fixture = try Fixture()
    try fixture.drop("http://host/a\n", as: "a")
    let claim = try fixture.claim("a")
    let name = try #require(fixture.names("cur").first)
    try fixture.link("cur/\(name)", "partial/a")
    try claim.park(until: .now())
    #expect(fixture.names("partial") == ["a"] && fixture.names("cur") == [])
  }

  /// Its receipt makes way for the archives by a move to its own name, which is taken.
  @Test(arguments: [true, false]) func `a receipt by the name of the archives stays`(lacksNoReplace: Bool) throws {
    let fixture = try Fixture()
    try fixture.write("done/archive", "http://host/a\n")
    fixture.spool.lacksNoReplace.store(lacksNoReplace, ordering: .relaxed)
    #expect(try Archive(fixture.spool).take(FileName("archive"), doneAt: .now()) == nil)
    #expect(try fixture.text("done/archive~2") == "http://host/a\n")
    #expect(fixture.status("done/archive").map { $0.st_mode & S_IFMT } == S_IFDIR)
  }

  @Test func `a claim of a job that waits by a number goes`() throws {
    let fixture = try double(Self.claim, "partial/a~4")
    #expect(try fixture.claim("a~4", from: .partial).isOpen)
    #expect(fixture.names("cur").count == 1 && fixture.names("partial") == [])
  }

  /// Of a rename from `new/` that a power cut left half made.
  @Test func `the name that a numbered claim was dropped by goes`() throws {
    let fixture = try double("cur/a~2:alpha.7.00000009", "new/a")
    #expect(try fixture.claim("a~2:alpha.7.00000009", from: .cur).isOpen)
    #expect(fixture.names("new") == [] && fixture.names("cur").count == 1)
  }

  /// A power cut has left a rename half made, or a person's move, and the other name was moved on.
  @Test(arguments: [
    ("urgent/a", "failed/a"), ("new/a", "new/a~2"), ("urgent/a", "urgent/a~2"), (claim, "new/a:alpha.7.00000009"),
  ])
  func `the other name of a claimed file goes`(name: String, other: String) throws {
    let fixture = try double(name, other)
    let parts = name.split(separator: "/").map(String.init)
    #expect(try fixture.claim(parts[1], from: #require(Directory(rawValue: parts[0]))).isOpen)
    #expect(files(of: fixture).count == 1, "\(files(of: fixture))")
  }

  @Test(arguments: Gesture.allCases) func `no command takes back a claim that is done`(gesture: Gesture) throws {
    let fixture = try double(Self.claim, "done/a~4")
    _ = try Steering(fixture.spool).perform(gesture, FileName("a"))
    // What of this does not apply to running jobs leaves the claim to whoever takes it over.
    let left = gesture.sources.contains(.cur) ? [] : [Self.claim]
    #expect(files(of: fixture) == left + ["done/a~4"], "\(gesture)")
  }

  @Test func `no new URL takes it back either`() throws {
    let fixture = try double(Self.claim, "done/a~4")
    let relinking = Relinking(to: ["https://host/b"], shownURL: "https://host/b", isSame: false) { _ in nil }
    guard case .notFound = try Steering(fixture.spool).relink(FileName("a"), in: nil, relinking) else {
      throw Unexpected("relinked")
    }
    #expect(files(of: fixture) == ["done/a~4"])
  }

  private static let shared = FileSystemKind(name: "fuse", sharing: .program)

  /// A person has moved the claim's name meanwhile. Or `verify --refetch` is about to take the receipt away: then the
  /// other name would be the last one.
  @Test(arguments: [("hold", Gesture.release), ("urgent", .hold), ("partial", .hold), ("new", .high)])
  func `a job that is done does not run again`(directory: String, gesture: Gesture) throws {
    let fixture = try double("\(directory)/a", "done/a~4", kind: Self.shared)
    _ = try Steering(fixture.spool).perform(gesture, FileName("a"))
    #expect(files(of: fixture) == ["\(directory)/a", "done/a~4"])
    fixture.spool.clockOffset.store(11, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(gesture, FileName("a"))
    #expect(files(of: fixture) == ["done/a~4"])
  }

  /// ZFS before 2.2 is local, and has no rename without replacing.
  @Test func `a job that is done does not run again on a local file system either`() throws {
    let fixture = try double("hold/a", "done/a~4", kind: FileSystemKind(type: 0x2FC1_2FC1))
    fixture.spool.clockOffset.store(11, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(.release, FileName("a"))
    #expect(files(of: fixture) == ["done/a~4"])
  }

  /// Two names would be taken for those of another move, made while the dropper removes the one in `tmp/`.
  @Test func `a job is not claimed or changed before its dropper's move is over`() throws {
    let text = JobText.finished(Array("http://host/a\n".utf8), on: Self.shared)
    let fixture = try Fixture(kind: Self.shared)
    try writeFile(fixture.files.path("new/a"), text)
    try fixture.link("new/a", "tmp/a")
    _ = try Steering(fixture.spool).perform(.low, FileName("a"))
    #expect(try fixture.text("new/a") == String(decoding: text, as: UTF8.self))
    #expect(try fixture.outcome("a").label == "unfinished")
    // ln(1) is another way to drop a job.
    _ = try fixture.claim("a", secondsLater: 11)
  }

  /// A worker takes the job by its new name between the two steps, and parks it by its old one.
  @Test func `a job that has come back to its old name keeps it`() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "partial/a") { unlink(files.path("urgent/a")) }
    }
    try fixture.write("partial/a", "http://host/a\n")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    _ = try Steering(fixture.spool).perform(.high, FileName("a"))
    #expect(files(of: fixture) == ["partial/a"] && fixture.names("tmp") == [])
  }

  // MARK: where another file gets the name, or a call fails

  /// The answer of a server was lost, and the kernel has asked it again.
  @Test func `a link that is made twice drops the job`() throws {
    let fixture = try Fixture { files in
      Probe { call in
        let names = call.path.split(separator: " ").map { files.path(String($0)) }
        if call.kind == .link, names.count == 2 { _ = link(names[0], names[1]) }
        return nil
      }
    }
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    try fixture.drop("http://host/a\n", as: "a")
    #expect(files(of: fixture) == ["new/a"] && fixture.names("tmp") == [])
  }

  /// What gets a name at the moment at which the file that has it is to go.
  private func replacing(_ name: String, _ body: (Fixture) throws -> Void) throws -> Fixture {
    let turns = Counter()
    let fixture = try Fixture { files in
      Probe { call in
        let path = call.path
        let isGoing = call.kind == .unlink && path == name || call.kind == .rename && path.hasPrefix("\(name) ")
        if isGoing, turns.next() == 1 {
          _ = rename(files.path("hold/other"), files.path(name))
        }
        return nil
      }
    }
    try fixture.write("hold/other", "http://host/other\n")
    try body(fixture)
    #expect(fixture.names("hold") == [] && fixture.names("tmp") == [])
    return fixture
  }

  @Test func `a job that gets the name of an empty file keeps it`() throws {
    let fixture = try replacing("partial/a") { fixture in
      try fixture.write("partial/a", "")
      #expect(try !JobMoves(fixture.spool).removeTouched(Path(.partial, FileName("a")), in: .partial))
    }
    #expect(try fixture.text("partial/a") == "http://host/other\n")
  }

  /// Others complete the move, the worker claims the job again by that name, and only then goes on with the move.
  @Test func `a claim that has come back to its name keeps it`() throws {
    let owner = try Fixture().spool.owner
    let claim = ClaimName.fileName(try jobName("a"), owner)
    let fixture = try replacing(Path(.cur, claim).display) { fixture in
      try #require(fixture.spool.owner.text == owner.text)
      try fixture.write(Path(.cur, claim).display, "http://host/a\n")
      fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
      try fixture.spool.moveNoReplace(Path(.cur, claim), Path(.new, FileName("a")))
    }
    #expect(try fixture.text(Path(.cur, claim).display) == "http://host/other\n")
  }

  @Test func `a job that cannot be looked at gets its name back`() throws {
    let fixture = try Fixture(hook: Probe.once(.stat, "tmp/moved") { .fail(.ioError) })
    try fixture.write("new/a", "http://host/a\n")
    let path = Path(.new, FileName("a"))
    let status = try #require(try fixture.spool.status(.new, FileName("a")))
    #expect(throws: SpoolError.self) { try fixture.spool.remove(path, of: status) }
    #expect(files(of: fixture) == ["new/a"] && fixture.names("tmp") == [])
  }

  /// The same in a move by link: it has both names then, like one that a crash cut.
  @Test func `nor does a failed look at a move leave the old name elsewhere`() throws {
    let fixture = try Fixture(hook: Probe.once(.stat, "tmp/moved") { .fail(.ioError) })
    try fixture.write("new/a", "http://host/a\n")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    #expect(throws: SpoolError.self) {
      try fixture.spool.moveNoReplace(Path(.new, FileName("a")), Path(.hold, FileName("a")))
    }
    #expect(files(of: fixture) == ["new/a", "hold/a"] && fixture.names("tmp") == [])
  }

  private func files(of fixture: Fixture) -> [String] {
    ["new", "urgent", "cur", "partial", "hold", "failed", "done"].flatMap { directory in
      fixture.names(directory).map { "\(directory)/\($0)" }
    }
  }
}
