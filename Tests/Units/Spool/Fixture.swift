import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// This host, as if its clock was set, and as if it slept.
class MovedHost: Host, @unchecked Sendable {
  private let moved = Mutex((set: Int64(0), slept: Int64(0), passed: Int64(0)))

  func set(by seconds: Int64) { moved.withLock { $0.set += seconds * 1000 } }
  func sleep(seconds: Int64) { moved.withLock { $0.slept += seconds * 1000 } }
  func pass(milliseconds: Int64) { moved.withLock { $0.passed += milliseconds } }

  override func wallMilliseconds() -> Int64 {
    super.wallMilliseconds() + moved.withLock { $0.set + $0.slept + $0.passed }
  }
  override func milliseconds() -> Int64 { super.milliseconds() + moved.withLock { $0.slept + $0.passed } }
  override func awakeMilliseconds() -> Int64 { super.awakeMilliseconds() + moved.withLock { $0.passed } }
}

/// A temporary spool, seen through the program's eyes and, with `files`, without them.
struct Fixture {
  let files: TemporarySpool
  let spool: Spool

  /// - Parameter kind: the type of the spool's file system; nil for what it is.
  init(host: String = "alpha", hook: (any CallHook)? = nil, kind: FileSystemKind? = nil) throws {
    files = try TemporarySpool()
    spool = try Fixture.open(files, host: host, tag: 1, hook: hook, kind: kind)
  }

  /// A spool whose hook works on its files.
  init(watching hook: (TemporarySpool) -> any CallHook) throws {
    files = try TemporarySpool()
    spool = try Fixture.open(files, hook: hook(files))
  }

  /// The same spool as another worker opens it.
  func another(host: String = "alpha", hook: (any CallHook)? = nil, kind: FileSystemKind? = nil) throws -> Spool {
    try Fixture.open(files, host: host, tag: 2, hook: hook, kind: kind)
  }

  static func open(
    _ files: TemporarySpool, host: String = "alpha", tag: UInt32 = 1, hook: (any CallHook)? = nil,
    kind: FileSystemKind? = nil
  ) throws -> Spool {
    try Spool(
      files.root, owner: WorkerID(host: host, process: 42, tag: tag), boot: "boot-1", system: System(hook: hook),
      kind: kind)
  }

  /// Drops a job that can be claimed at once: no child of another test has it open for writing.
  func drop(_ text: String, as name: String) throws {
    _ = try whileNothingStarts { try Drops(spool).drop(text, as: jobName(name)) }
  }

  /// Claims a job from `new`, `partial` or `cur`, with the real time unless told otherwise.
  func outcome(_ name: String, from origin: Directory = .new, secondsLater: Int64 = 0) throws -> ClaimOutcome {
    try spool.outcome(name, from: origin, at: .now() + secondsLater)
  }

  func claim(_ name: String, from origin: Directory = .new, secondsLater: Int64 = 0) throws -> Claim {
    try outcome(name, from: origin, secondsLater: secondsLater).claim()
  }

  // MARK: its files, by paths below its root

  func names(_ directory: String) -> [String] { files.names(directory) }
  func bytes(_ path: String) throws -> [UInt8] { try readFile(files.path(path)) }
  func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }
  func write(_ path: String, _ text: String) throws { try writeFile(files.path(path), Array(text.utf8)) }
  func status(_ path: String) -> stat? { fileStatus(files.path(path)) }
  func move(_ path: String, _ target: String) throws { try files.move(path, target) }
  func link(_ path: String, _ other: String) throws {
    try check("link", Glibc.link(files.path(path), files.path(other)), other)
  }
  func remove(_ path: String) throws { try check("unlink", unlink(files.path(path)), path) }
  func makeDirectory(_ path: String) throws { try check("mkdir", mkdir(files.path(path), 0o700), path) }

  private func check(_ call: String, _ result: Int32, _ path: String) throws {
    if result != 0 { throw TestSupportError(call, path, errno: errno) }
  }
}

extension Spool {
  /// Claims a job, with the real time unless told otherwise.
  func outcome(
    _ name: String, from origin: Directory = .new, at now: Timestamp = .now(), knownDue: Int64 = .min
  ) throws -> ClaimOutcome {
    try Claims(self).claim(FileName(name), from: origin, now: now, knownDue: knownDue)
  }
}

/// What a hook does that may fail.
func recordingErrors(_ body: () throws -> Void) {
  do { try body() } catch { Issue.record(error) }
}

/// The cells of a table in text: a line is a row, `|` is between two cells, and several blanks are one.
func tableRows(_ text: String, columns: Int) -> [[String]] {
  text.split(separator: "\n").map { line in
    let cells = line.split(separator: "|", omittingEmptySubsequences: false)
    precondition(cells.count == columns, "\(line)")
    return cells.map { $0.split(separator: " ").joined(separator: " ") }
  }
}

/// The `key=value` of a cell. A word alone is a key, too.
func settings(_ cell: String) -> [String: String] {
  let pairs = cell.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1).map { String($0) } }
  return Dictionary(pairs.map { ($0[0], $0[$0.count - 1]) }) { _, last in last }
}

struct Unexpected: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension GestureOutcome {
  /// Where the job is that was moved.
  func movedTo() throws -> JobPlace {
    guard case .moved(_, let place) = self else { throw Unexpected("\(self)") }
    return place
  }
}

extension ClaimOutcome {
  func claim() throws -> Claim {
    guard case .claimed(let claim) = self else { throw Unexpected("not claimed but \(label)") }
    return claim
  }

  var label: String {
    switch self {
    case .claimed: "claimed"
    case .unavailable, .gone: "unavailable"
    case .leased: "leased"
    case .unfinished: "unfinished"
    case .notDue(let due): "not due until \(due)"
    case .barred(let defect): "barred: \(defect)"
    case .rejected(let name, let defect): "rejected as \(name.display): \(defect)"
    }
  }

  var defect: Defect? {
    if case .rejected(_, let defect) = self { defect } else { nil }
  }

  var rejectedName: FileName? {
    if case .rejected(let name, _) = self { name } else { nil }
  }
}

/// Watches calls, and does what a test wants at the one it waits for.
final class Probe: CallHook {
  private let action: @Sendable (Call) -> Fault?
  private let recorded = Mutex<[Call]>([])

  init(_ action: @escaping @Sendable (Call) -> Fault? = { _ in nil }) { self.action = action }

  /// Acts once, on the first call of a kind whose path contains `part`.
  static func once(_ kind: Call.Kind, _ part: String, _ action: @escaping @Sendable () -> Fault?) -> Probe {
    let isSpent = Atomic(false)
    return Probe { call in
      guard call.kind == kind, call.path.contains(part), !isSpent.exchange(true, ordering: .relaxed) else { return nil }
      return action()
    }
  }

  /// Does something at that moment.
  static func meanwhile(_ kind: Call.Kind, _ part: String, _ body: @escaping @Sendable () throws -> Void) -> Probe {
    once(kind, part) {
      recordingErrors(body)
      return nil
    }
  }

  func before(_ call: Call) -> Fault? {
    recorded.withLock { $0.append(call) }
    return action(call)
  }
  func after(_ call: Call) {}

  var calls: [Call] { recorded.withLock { $0 } }
  func count(_ kind: Call.Kind) -> Int { calls.count { $0.kind == kind } }
}

func jobName(_ name: String) throws -> JobName {
  guard let job = JobName(FileName(name)) else { throw Unexpected("\(name) is no job's name") }
  return job
}

func parsed(_ text: String) -> JobText { parsed(Array(text.utf8)) }
func parsed(_ bytes: [UInt8]) -> JobText { bytes.withUnsafeBytes { JobText($0) } }
/// The text of `defaults`.
func defaults(_ text: String) -> JobText { Array(text.utf8).withUnsafeBytes { JobText($0, defaults: true) } }

extension PartFile {
  func append(_ bytes: [UInt8]) throws(SpoolError) {
    let result: Result<Void, SpoolError> = bytes.withUnsafeBytes { buffer in
      Result { () throws(SpoolError) in try append(buffer) }
    }
    try result.get()
  }
}

/// Arms a hook once the preparations are over.
final class Switch: Sendable {
  private let state = Atomic(false)
  func turnOn() { state.store(true, ordering: .relaxed) }
  func turnOff() { state.store(false, ordering: .relaxed) }
  var isOn: Bool { state.load(ordering: .relaxed) }
}
