import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// What stands in `new/` belongs to somebody who may change it at any moment, and its file may have other names
/// elsewhere.
@Suite struct ChangingDropTests {
  private static let job = "https://host/a\n"

  /// What was judged to be a job is what is run, whatever the file holds a moment later.
  @Test(arguments: [
    "https://host/b\nverified: 2026-01-02T03:04:05Z size=1 crc32=00000000 part=7\n", "https://h\n", "",
    String(repeating: "junk\n", count: 1000),
  ])
  func whatWasJudgedIsRun(later: String) throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "cur/x:") { try writeFile(files.path("hold/other"), Array(later.utf8)) }
    }
    try fixture.files.drop("x", Self.job)
    // Two names: then the worker makes a copy.
    try fixture.link("new/x", "hold/other")
    let claim = try fixture.claim("x")
    try claim.append(.requeued(.now()))
    try claim.giveUp()
    let text = try fixture.text("failed/x")
    #expect(text.hasPrefix(Self.job + "requeued: ") && text.split(separator: "\n").count == 2, "\(text)")
    #expect(try fixture.text("hold/other") == later)
  }

  /// The schedule has looked at a text. A job with another one keeps its name, and nothing is written to it.
  @Test(arguments: [false, true]) func aTextThatIsNotWantedIsLeft(gotTheNameSince: Bool) throws {
    let (fixture, text) = (try Fixture(), "https://host/b\n")
    let hook = Probe.meanwhile(.rename, "cur/x:") { try fixture.move("hold/other", "new/x") }
    try fixture.files.drop("x", gotTheNameSince ? Self.job : text)
    if gotTheNameSince { try fixture.write("hold/other", text) }
    let spool = try fixture.another(hook: gotTheNameSince ? hook : nil)
    let outcome = try Claims(spool).claim(FileName("x"), from: .new, now: .now() + 60) { text in
      text.request.urls.first?.text == "https://host/a"
    }
    #expect(outcome.label == "unavailable" && fixture.names("cur") == [])
    #expect(try fixture.text("new/x") == text)
    #expect(try spool.outcome("x", at: .now() + 60).claim().origin == .new)
  }

  /// Has another file take the name of a job that is just being claimed.
  /// - Parameter text: that file's.
  /// - Parameter meanwhile: what happens at each later call, and what comes of it.
  private func exchanging(_ text: String, _ fixture: Fixture, _ meanwhile: @escaping @Sendable (Call) -> Fault?) throws
    -> ClaimOutcome
  {
    let isExchanged = Switch()
    let hook = Probe { call in
      if isExchanged.isOn { return meanwhile(call) }
      guard call.kind == .rename, call.path.contains("cur/x:") else { return nil }
      recordingErrors { try fixture.move("hold/other", "new/x") }
      isExchanged.turnOn()
      return nil
    }
    try fixture.files.drop("x", Self.job)
    try fixture.write("hold/other", text)
    return try fixture.another(hook: hook).outcome("x")
  }

  @Test func `a file that took the name of another is left to whoever writes it`() throws {
    let fixture = try Fixture()
    try fixture.write("hold/other", "")
    let writer = open(fixture.files.path("hold/other"), O_WRONLY | O_CLOEXEC)
    defer { close(writer) }
    let outcome = try exchanging("https://host/b\n", fixture) { _ in nil }
    #expect(outcome.label == "unfinished" && fixture.names("cur") == [])
    #expect(try fixture.text("new/x") == "https://host/b\n")
  }

  /// As a claim it would run without a look at who writes it.
  @Test func `a file that cannot be opened by the claim's name goes back`() throws {
    let fixture = try Fixture()
    let isSpent = Switch()
    let outcome = try exchanging("https://host/b\n", fixture) { call in
      guard call.kind == .open, call.path.hasPrefix("cur/x:"), !isSpent.isOn else { return nil }
      isSpent.turnOn()
      return .fail(.wouldBlock)
    }
    #expect(outcome.label == "unfinished" && fixture.names("cur") == [])
    #expect(try fixture.text("new/x") == "https://host/b\n")
  }

  @Test func `a file whose name is taken before it goes back gets a number`() throws {
    let fixture = try Fixture()
    let outcome = try exchanging("https://host/b", fixture) { call in
      if call.kind == .read, call.path.hasPrefix("cur/x:") {
        recordingErrors { try fixture.write("new/x", "https://host/c\n") }
      }
      return nil
    }
    #expect(outcome.label == "unfinished" && fixture.names("cur") == [])
    #expect(try fixture.text("new/x") == "https://host/c\n" && fixture.text("new/x~2") == "https://host/b")
  }

  /// Its owner was stopped in the middle of a move by link and unlink, and goes on after another worker has judged it.
  @Test func aMoveThatBeginsBeforeTheClaimIsCompleted() throws {
    let fixture = try Fixture()
    let name = "x:alpha.7.00000009"
    let hook = Probe.meanwhile(.rename, "cur/x:") { try fixture.link("cur/\(name)", "done/x") }
    try fixture.write("cur/\(name)", Self.job)
    let spool = try fixture.another(hook: hook)
    // The owner can complete it, or the next claim does.
    for left in [[name], []] {
      let outcome = try spool.outcome(name, from: .cur, at: .now() + 3600)
      #expect(outcome.label == "unavailable" && fixture.names("cur") == left)
    }
    #expect(try fixture.text("done/x") == Self.job)
  }

  /// `ln files/big new/`: the worker writes its record beside the file, not into it.
  @Test func aLargeFileWithTwoNamesIsNotWrittenTo() throws {
    let fixture = try Fixture()
    let payload = fixture.files.path("files/payload")
    try writeFile(payload, Array("https://host/a\n".utf8))
    let size = Spool.maximumJobFile + 1
    try #require(truncate(payload, off_t(size)) == 0 && link(payload, fixture.files.path("new/x")) == 0)
    let outcome = try fixture.outcome("x", secondsLater: 3600)
    #expect(outcome.defect?.reason.contains("a job has at most 64 KiB") == true, "\(outcome.label)")
    #expect(fileStatus(payload).map { Int($0.st_size) } == size)
    #expect(fixture.names("failed") == ["x", "x.record"] && fixture.names("new") == [])
    #expect(try fixture.files.lines("failed/x.record").last?["code"] == "malformed")
  }

  enum Substitute: String, CaseIterable, Sendable { case symlink, dangling, directory, socket, fifo, none }

  /// Something else takes the job's name between a look at it and its opening, at each opening there is.
  @Test(arguments: Substitute.allCases, [1, 2])
  func substitutedBeforeItIsOpened(by substitute: Substitute, opening: Int) throws {
    let files = try TemporarySpool()
    let victim = files.path("files/victim")
    let path = files.path("new/x")
    try writeFile(victim, Array(Self.job.utf8))
    let openings = Counter()
    let hook = Probe { call in
      guard call.kind == .open, call.path == "new/x", openings.next() == opening else { return nil }
      unlink(path)
      switch substitute {
      case .symlink: symlink(victim, path)
      case .dangling: symlink(nowhere, path)
      case .directory: mkdir(path, 0o700)
      case .socket: mknod(path, S_IFSOCK | 0o600, 0)
      case .fifo: mkfifo(path, 0o600)
      case .none: break
      }
      return nil
    }
    let spool = try Fixture.open(files, hook: hook)
    try files.drop("x", Self.job)
    var outcome = try spool.outcome("x")
    #expect(openings.current >= opening && files.names("cur") == [])
    #expect(try readFile(victim) == Array(Self.job.utf8))
    if substitute == .fifo, opening == 2 {
      // A pipe can be opened, and is not what was locked.
      #expect(outcome.label == "unavailable")
      outcome = try spool.outcome("x")
    }
    if substitute == .none {
      #expect(outcome.label == "unavailable")
    } else {
      #expect(outcome.defect?.reason.contains("not a regular file") == true, "\(outcome.label)")
    }
    #expect(files.names("new") == [])
  }

  /// The same between its opening and its rename: what is nobody's to move is no trouble of the spool's.
  @Test func substitutedBeforeItsRename() throws {
    let replaced = try Fixture { files in
      Probe.once(.rename, "new/x ") {
        unlink(files.path("new/x"))
        mkdir(files.path("new/x"), 0o755)
        return .fail(.permissionDenied)
      }
    }
    try replaced.files.drop("x", Self.job)
    #expect(try replaced.outcome("x").label == "unavailable")
    let fixture = try Fixture()
    try fixture.files.drop("x", Self.job)
    let barred = try fixture.another(hook: Probe.once(.rename, "new/x ") { .fail(.permissionDenied) })
    #expect(try barred.outcome("x").label.hasPrefix("barred: "))
    let refused = Switch()
    let closed = try fixture.another(
      hook: Probe { call in
        let isRefused = call.kind == .rename || call.kind == .stat && call.path == "cur"
        return isRefused && refused.isOn ? .fail(.permissionDenied) : nil
      })
    refused.turnOn()
    #expect(throws: SpoolError.self, "then jobs cannot be claimed at all") {
      try closed.outcome("x")
    }
  }

  /// Dropped by link(2) and not yet unlinked, in the place of the file that is just being claimed: that is one job, and
  /// not its own double.
  @Test(arguments: [Directory.new, .partial])
  func replacedByOneWithTwoNames(origin: Directory) throws {
    let files = try TemporarySpool()
    let (path, other) = (files.path("\(origin.rawValue)/x"), files.path("tmp/x"))
    let hook = Probe.once(.rename, "\(origin.rawValue)/x ") {
      link(other, "\(other)2")
      rename("\(other)2", path)
      return nil
    }
    let spool = try Fixture.open(files, hook: hook)
    for place in [path, other] { try writeFile(place, Array(Self.job.utf8)) }
    let claim = try spool.outcome("x", from: origin, knownDue: .max).claim()
    #expect(files.names("cur") == ["x:alpha.42.00000001"] && files.names("tmp") == ["x"])
    try claim.giveUp()
    #expect(try readFile(files.path("failed/x")) == Array(Self.job.utf8))
  }

  /// A program that runs cannot be opened for writing; it is no job, and nothing is wrong with the spool.
  @Test func aRunningProgram() throws {
    let fixture = try Fixture()
    try fixture.files.drop("x", Self.job)
    // The first opening is for reading, and asks for writers; only one for writing fails so (open(2)).
    let openings = Counter()
    let spool = try fixture.another(
      hook: Probe { call in
        guard call.kind == .open, call.path == "new/x" else { return nil }
        return openings.next() == 2 ? .fail(.textFileBusy) : nil
      })
    let claim = try spool.outcome("x").claim()
    try claim.giveUp()
    #expect(try fixture.text("failed/x") == Self.job)
  }

  /// A write lease (fcntl(2)) is its holder's word that the file is being written.
  @Test func aWriteLease() throws {
    let fixture = try Fixture()
    try fixture.files.drop("x", Self.job)
    let spool = try fixture.another(hook: Probe.once(.open, "new/x") { .fail(.wouldBlock) })
    #expect(try spool.outcome("x").label == "unfinished")
  }

  /// Another host has replaced the file that is open here, as a claim does where droppers are not seen. GlusterFS and
  /// NFS then say ESTALE, to any call.
  @Test(arguments: [Call.Kind.lock, .read, .stat, .lease])
  func aFileThatAnotherHostHasReplaced(call: Call.Kind) throws {
    let fixture = try Fixture()
    try fixture.files.drop("x", Self.job)
    let isOpen = Switch()
    let spool = try fixture.another(
      hook: Probe {
        if $0.kind == .open && $0.path == "new/x" { isOpen.turnOn() }
        return isOpen.isOn && $0.kind == call && $0.path == "new/x" ? .fail(.staleNFSFileHandle) : nil
      })
    let outcome = try spool.outcome("x")
    #expect(["unavailable", "unfinished"].contains(outcome.label))
    #expect(fixture.names("new") == ["x"])
  }

  /// Another user's directory cannot be moved to another one: it stays, is told of, and the spool is none the worse.
  @Test(arguments: [Errno.permissionDenied, .notPermitted, .resourceBusy])
  func whatCannotBeMoved(errno: Errno) throws {
    let fixture = try Fixture()
    try fixture.makeDirectory("new/x")
    let spool = try fixture.another(hook: Probe { $0.kind == .rename ? .fail(errno) : nil })
    for _ in 1...2 {
      guard case .barred(let defect) = try spool.outcome("x") else { throw Unexpected("not barred") }
      #expect(defect.reason.contains("not a regular file") && defect.reason.contains("cannot be moved"))
    }
    #expect(fixture.names("new") == ["x"] && fixture.names("failed") == ["x.record"])
  }

  /// As where another user has mounted a file system of their own (fuse(4)).
  @Test func whatCannotBeLookedAt() throws {
    let fixture = try Fixture()
    try fixture.files.drop("x", Self.job)
    let spool = try fixture.another(
      hook: Probe { [.open, .stat].contains($0.kind) && $0.path == "new/x" ? .fail(.permissionDenied) : nil })
    #expect(try spool.outcome("x").label.hasPrefix("barred: "))
  }
}
