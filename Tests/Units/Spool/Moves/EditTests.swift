import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Changing a job's text while others move it: the change happens or it does not, and the job stays one job.
@Suite struct EditTests {
  /// What somebody else does at the name of the job, between any two calls of the command.
  enum Intrusion: String, CaseIterable { case move, halfMove, remove, replace, claim, edit }

  /// What a command does to a job, where the job is, and where it is afterwards.
  enum Change: String, CaseIterable {
    case url, low, normal, get

    var origins: [(Directory, to: Directory)] {
      switch self {
      case .url: [(.new, .new), (.partial, .new), (.failed, .new), (.hold, .hold), (.urgent, .urgent), (.cur, .new)]
      case .low: [(.new, .new), (.partial, .partial)]
      case .normal: [(.urgent, .new)]
      case .get: [(.failed, .new), (.done, .new), (.hold, .new), (.partial, .new)]
      }
    }

    func perform(_ spool: Spool, at place: JobPlace) throws {
      switch self {
      case .url: _ = try Steering(spool).relink(place.job, in: nil, EditTests.relinking)
      case .low: _ = try Steering(spool).perform(.low, place.job)
      case .normal: _ = try Steering(spool).perform(.normal, place.job)
      case .get:
        do throws(SpoolError) {
          try Steering(spool).requeue(place, as: JobName(unchecked: place.job), asking: "https://host/new\n# mine\n")
        } catch  where error.errno == .noSuchFileOrDirectory {
          // `get` looks again.
        }
      }
    }
  }

  private static let relinking = Relinking(to: ["https://host/new"], shownURL: "https://host/new", isSame: false) { _ in
    nil
  }
  private static let text = "https://host/old\n# mine\nrequeued: 2026-01-01T00:00:00Z\n"

  /// Every file of the spool with the job's text, or the other job's.
  private func files(_ files: TemporarySpool, with text: String) throws -> [String] {
    try Directory.allCases.filter { $0 != .files }.flatMap { directory in
      try files.names(directory.rawValue).map { "\(directory.rawValue)/\($0)" }.filter {
        String(decoding: try readFile(files.path($0)), as: UTF8.self).contains(text)
      }
    }
  }

  private func put(_ fixture: Fixture, in origin: Directory) throws -> JobPlace {
    let name = origin == .cur ? "x:alpha.7.00000009" : "x"
    let path = fixture.files.path("\(origin.rawValue)/\(name)")
    try writeFile(path, Array(Self.text.utf8))
    return try #require(try JobSearch(fixture.spool).places(of: FileName("x")).first)
  }

  private func elsewhere(_ place: JobPlace) -> Path { Path(place.directory == .hold ? .new : .hold, FileName("x")) }

  /// Who has made the link of half a move goes on: with the file that it has linked, or not at all.
  private func completeHalfMove(_ fixture: Fixture, from place: JobPlace) {
    let (old, new) = (fixture.files.path(place.path.display), fixture.files.path(elsewhere(place).display))
    guard let moved = fileStatus(new) else { return }
    if fileStatus(old)?.st_ino == moved.st_ino { unlink(old) } else if moved.st_nlink > 1 { unlink(new) }
  }

  private func intrude(_ intrusion: Intrusion, _ fixture: Fixture, _ other: Spool, at place: JobPlace) throws {
    guard fixture.status(place.path.display) != nil else { return }
    let elsewhere = elsewhere(place)
    switch intrusion {
    case .move: try? other.moveNoReplace(place.path, elsewhere)
    case .halfMove: link(fixture.files.path(place.path.display), fixture.files.path(elsewhere.display))
    case .remove: unlink(fixture.files.path(place.path.display))
    case .replace:
      try fixture.write("tmp/theirs", "https://host/other\n")
      try? other.moveNoReplace(place.path, elsewhere)
      try? other.moveNoReplace(Path(.tmp, FileName("theirs")), place.path)
    case .claim: _ = try other.outcome("x", from: place.directory, knownDue: .max)
    case .edit:
      // As long as the first one has the job in hand, the second one waits, here in vain.
      let job = open(fixture.files.path(place.path.display), O_RDONLY)
      defer { close(job) }
      guard flock(job, LOCK_EX | LOCK_NB) == 0 else { return }
      flock(job, LOCK_UN)
      _ = try Steering(other).perform(.low, FileName("x"))
    }
  }

  private func isExchange(_ call: Call) -> Bool {
    call.kind == .rename && call.path.hasPrefix("tmp/") && !call.path.contains(" cur/")
  }

  /// What happens at a call: it is known only when the spool is there.
  private final class Act: @unchecked Sendable {
    var run: () -> Void = {}
  }

  /// Has somebody intrude before the `number`-th call of the command.
  /// - Returns: whether there was such a call.
  private func play(_ change: Change, in origin: Directory, exchanges: Bool, _ intrusion: Intrusion, before number: Int)
    throws -> Bool
  {
    let (calls, isArmed, hasIntruded) = (Counter(), Switch(), Switch())
    let act = Act()
    let fixture = try Fixture(
      hook: Probe { call in
        if !exchanges, isExchange(call) { return .fail(.invalidArgument) }
        if isArmed.isOn, calls.next() == number { act.run() }
        return nil
      })
    let other = try fixture.another()
    let place = try put(fixture, in: origin)
    // The spool holds its hook, and would never be closed.
    defer { act.run = {} }
    act.run = {
      hasIntruded.turnOn()
      recordingErrors { try intrude(intrusion, fixture, other, at: place) }
    }
    isArmed.turnOn()
    try change.perform(fixture.spool, at: place)
    if intrusion == .halfMove { completeHalfMove(fixture, from: place) }
    let (mine, theirs) = (
      try files(fixture.files, with: "# mine"), try files(fixture.files, with: "https://host/other")
    )
    let what = Comment("\(change) in \(origin), \(intrusion) before call \(number): \(mine), \(theirs)")
    #expect(mine.count == 1 || intrusion == .remove && mine.isEmpty, what)
    #expect(theirs.count <= 1 && !(mine + theirs).contains { $0.hasPrefix("tmp/") && !$0.hasSuffix("theirs") }, what)
    return hasIntruded.isOn
  }

  /// Invariant 1, whatever others do at whatever moment. Where names cannot be exchanged as well.
  @Test(arguments: Change.allCases, [true, false])
  func `the job is one job, whoever else moves it at whatever moment`(change: Change, exchanges: Bool) throws {
    for (origin, _) in change.origins {
      for intrusion in Intrusion.allCases where intrusion != .claim || [.new, .urgent, .partial].contains(origin) {
        var number = 1
        while try play(change, in: origin, exchanges: exchanges, intrusion, before: number) { number += 1 }
        #expect(number > 5)
      }
    }
  }

  @Test(arguments: Change.allCases, [true, false])
  func `undisturbed, it has its new text where it belongs, and keeps its journal`(change: Change, exchanges: Bool)
    throws
  {
    for (origin, target) in change.origins {
      let fixture = try Fixture(hook: Probe { call in !exchanges && isExchange(call) ? .fail(.invalidArgument) : nil })
      let place = try put(fixture, in: origin)
      try change.perform(fixture.spool, at: place)
      let text = try fixture.text("\(target.rawValue)/x")
      #expect(text != Self.text && text.contains("requeued: 2026-01-01T00:00:00Z\n"), "\(change) \(origin): \(text)")
      #expect(try files(fixture.files, with: "# mine") == ["\(target.rawValue)/x"])
    }
  }

  /// Another job gets the name just before the exchange, and then the command is stopped for long.
  @Test func `a person who moves the wrong file meanwhile moves the job`() throws {
    let step = Counter()
    let fixture = try Fixture { files in
      Probe { [self] call in
        if isExchange(call), step.next() == 1 {
          recordingErrors {
            try files.move("new/x", "done/x")
            try writeFile(files.path("new/x"), Array("https://host/other\n".utf8))
          }
        } else if call.kind == .stat, call.path.hasPrefix("tmp/"), fileStatus(files.path("done/x")) != nil {
          _ = rename(files.path("new/x"), files.path("hold/x"))
        }
        return nil
      }
    }
    _ = try put(fixture, in: .new)
    _ = try Steering(fixture.spool).perform(.low, FileName("x"))
    #expect(try files(fixture.files, with: "# mine") == ["done/x"])
    #expect(try files(fixture.files, with: "https://host/other") == ["hold/x"])
  }

  /// After a power cut, btrfs could have the new file by a later name, and the old one by the name that it had before.
  @Test func `the old file's name is durable before another one has it`() throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe)
    _ = try put(fixture, in: .new)
    _ = try Steering(fixture.spool).perform(.low, FileName("x"))
    let flush = try #require(probe.calls.firstIndex { $0.kind == .fsync && $0.path == "new" })
    #expect(try flush < #require(probe.calls.firstIndex { isExchange($0) }))
  }

  /// Nor does it keep an order between names in different directories, and any may have been the job's.
  @Test func `on btrfs, so is every name that it has lost`() throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe, kind: FileSystemKind(type: 0x9123_683E))
    _ = try put(fixture, in: .new)
    _ = try Steering(fixture.spool).perform(.low, FileName("x"))
    let exchange = try #require(probe.calls.firstIndex(where: isExchange))
    let flushed = Set(probe.calls[..<exchange].filter { $0.kind == .fsync }.map(\.path))
    #expect(flushed.isSuperset(of: ["new", "cur", "partial", "hold", "failed", "done"]), "\(flushed)")
  }

  /// It may have died between a failed fsync and the line that says so.
  @Test func `a job that is held is copied if its worker is dead`() throws {
    for isDead in [true, false] {
      let fixture = try Fixture()
      let place = try put(fixture, in: .cur)
      try setModificationTime(fixture.files.path(place.path.display), to: 1_000_000_000)
      let worker = open(fixture.files.path(place.path.display), O_RDONLY | O_CLOEXEC)
      defer { close(worker) }
      if !isDead { try #require(flock(worker, LOCK_EX | LOCK_NB) == 0) }
      let held = try Steering(fixture.spool).perform(.hold, FileName("x")).movedTo()
      let status = try #require(fixture.status("hold/x"))
      #expect(status.st_ino == held.inode && (held.inode == place.inode) == !isDead)
      #expect(status.st_mtim.tv_sec == 1_000_000_000)
      #expect(try fixture.text("hold/x") == Self.text && fixture.names("tmp") == [])
    }
  }

  /// Another job gets the name at the moment at which the command takes it.
  private func replacing(_ fixture: Fixture, in directory: String) {
    recordingErrors {
      try fixture.move("\(directory)/x", "done/x")
      try fixture.write("\(directory)/x", "https://host/other\n")
    }
  }

  @Test func `a file that cannot be looked at after the exchange goes back`() throws {
    let (exchanges, act, isSpent) = (Counter(), Act(), Switch())
    let fixture = try Fixture(
      hook: Probe { call in
        if isExchange(call), exchanges.next() == 1 { act.run() }
        guard call.kind == .stat, call.path.hasPrefix("tmp/"), exchanges.current > 0, !isSpent.isOn else { return nil }
        isSpent.turnOn()
        return .fail(.ioError)
      })
    let place = try put(fixture, in: .failed)
    act.run = { replacing(fixture, in: "failed") }
    #expect(throws: SpoolError.self) { try JobEditor(fixture.spool).edit(place) { $0 } }
    #expect(isSpent.isOn && fixture.names("tmp") == [])
    #expect(try files(fixture.files, with: "# mine") == ["done/x"])
    #expect(try files(fixture.files, with: "https://host/other") == ["failed/x"])
  }

  /// As a claim of this process it would run, or wait for ever.
  @Test func `a job that was taken by mistake gets a number where its name is taken again`() throws {
    let act = Act()
    let (isTaken, isSpent) = (Switch(), Switch())
    let fixture = try Fixture(
      hook: Probe { call in
        if isExchange(call) { return .fail(.invalidArgument) }
        if call.kind == .rename, call.path.hasPrefix("failed/x cur/") {
          act.run()
          isTaken.turnOn()
        } else if call.kind == .stat, call.path.hasPrefix("cur/x:"), isTaken.isOn, !isSpent.isOn {
          isSpent.turnOn()
          act.run()
        }
        return nil
      })
    let place = try put(fixture, in: .failed)
    act.run = {
      if isTaken.isOn {
        recordingErrors { try fixture.write("failed/x", "https://host/third\n") }
      } else {
        replacing(fixture, in: "failed")
      }
    }
    #expect(throws: SpoolError.self) { try JobEditor(fixture.spool).edit(place) { $0 } }
    #expect(isSpent.isOn && fixture.names("cur") == [])
    #expect(try files(fixture.files, with: "https://host/other") == ["failed/x~2"])
    #expect(try fixture.text("failed/x") == "https://host/third\n")
  }

  /// Another job has the name where it would go: it has its old text then.
  @Test(arguments: [true, false])
  func `a name that is taken changes nothing`(exchanges: Bool) throws {
    let fixture = try Fixture(hook: Probe { call in !exchanges && isExchange(call) ? .fail(.invalidArgument) : nil })
    _ = try put(fixture, in: .failed)
    try fixture.write("new/x", "https://host/other\n")
    guard case .taken = try Steering(fixture.spool).relink(FileName("x"), in: .failed, Self.relinking) else {
      throw Unexpected("not taken")
    }
    #expect(try fixture.text("failed/x") == Self.text && fixture.text("new/x") == "https://host/other\n")
    #expect(fixture.names("tmp") == [])
  }

  /// Between two exchanges of names a person could move the other one's text away.
  @Test func `an edit that has waited for another one leaves its text alone`() throws {
    let act = Act()
    let hook = Probe { call in
      if call.kind == .lock, call.path == "failed/x" { act.run() }
      return nil
    }
    let fixture = try Fixture(hook: hook)
    let (place, other) = (try put(fixture, in: .failed), try fixture.another())
    act.run = {
      act.run = {}
      recordingErrors { _ = try JobEditor(other).edit(place) { _ in Array("https://host/other\n".utf8) } }
    }
    #expect(throws: SpoolError.self) { try JobEditor(fixture.spool).edit(place) { $0 } }
    #expect(!hook.calls.contains(where: isExchange))
    #expect(try fixture.text("failed/x") == "https://host/other\n" && fixture.names("tmp") == [])
  }

  /// Somebody has died in the middle of a move by link and unlink, while a worker gave the job a number.
  @Test(arguments: ["partial/x~2", "cur/x~2:alpha.7.00000009"])
  func `a job with two names is not edited`(second: String) throws {
    let fixture = try Fixture()
    let place = try put(fixture, in: .hold)
    try fixture.link("hold/x", second)
    #expect(throws: SpoolError.self) { try JobEditor(fixture.spool).edit(place) { $0 + Array("# new\n".utf8) } }
    #expect(try fixture.text("hold/x") == Self.text && fixture.text(second) == Self.text)
  }

  /// The job has moved on, and another one has its name, when names are exchanged; and the way back fails.
  @Test func `an exchange that cannot be undone loses no job`() throws {
    let (exchanges, act) = (Counter(), Act())
    let fixture = try Fixture(
      hook: Probe { call in
        guard isExchange(call) else { return nil }
        let number = exchanges.next()
        if number == 1 { act.run() }
        return number == 2 ? .fail(.ioError) : nil
      })
    let place = try put(fixture, in: .failed)
    act.run = {
      recordingErrors {
        try fixture.move("failed/x", "new/x")
        try fixture.write("failed/x", "https://host/other\n")
      }
    }
    #expect(throws: SpoolError.self) { try JobEditor(fixture.spool).edit(place) { $0 } }
    #expect(try files(fixture.files, with: "# mine") == ["new/x"])
    #expect(try files(fixture.files, with: "https://host/other") == ["failed/x"])
  }

  /// What is to run goes on with its old text, at once.
  @Test(arguments: Change.allCases)
  func `on a full disk nothing is changed and nothing is paused`(change: Change) throws {
    for (origin, _) in change.origins {
      let fixture = try Fixture(hook: Probe { $0.kind == .write || $0.kind == .create ? .fail(.noSpace) : nil })
      let place = try put(fixture, in: origin)
      #expect(throws: SpoolError.self, "\(change) \(origin)") { try change.perform(fixture.spool, at: place) }
      let stays = origin == .cur ? "partial/x" : change == .get && origin == .done ? "new/x" : place.path.display
      #expect(try files(fixture.files, with: "# mine") == [stays])
      #expect(try fixture.text(stays) == Self.text)
      if origin == .cur { #expect(try fixture.claim("x", from: .partial).isOpen, "it is due") }
    }
  }

  /// As in the job that the list's first link got.
  @Test func `a link by which a list leaves encryption takes no secrets with it`() {
    let relinking = Relinking(to: ["http://i/new"], shownURL: "http://i/new", isSame: false, isOffered: true) { _ in
      nil
    }
    let once = relinking.applied(to: Array("https://host/old\n".utf8))
    #expect(once.withUnsafeBytes { JobText($0) }.request.isOffered)
    let twice = relinking.applied(to: once)
    #expect(twice.withUnsafeBytes { JobText($0) }.request.isOffered && twice.count == once.count)
  }

  /// Notepad writes it in front of the first line, behind which it would spoil the URL.
  @Test func `a byte order mark does not come behind another line`() {
    let relinking = Relinking(to: ["http://i/new"], shownURL: "http://i/new", isSame: false) { _ in nil }
    let text = relinking.applied(to: [0xEF, 0xBB, 0xBF] + Array("output: x\nhttp://h/a\n".utf8))
    #expect(String(decoding: text, as: UTF8.self) == "url: http://i/new\noutput: x\n")
  }

  /// Whoever is told that it was not dropped drops it again.
  @Test func `a drop whose last flush fails is no drop`() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .fsync && !$0.path.hasPrefix("tmp/") ? .fail(.ioError) : nil })
    #expect(throws: SpoolError.self) { try Drops(fixture.spool).drop("https://host/a\n", as: jobName("a")) }
    #expect(throws: SpoolError.self) {
      try Drops(fixture.spool).subscribe("list: https://host/feed\nurl: https://host/feed\n", as: jobName("b"))
    }
    for directory in ["tmp", "new", "standing"] { #expect(fixture.names(directory) == []) }
  }
}
