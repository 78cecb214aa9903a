import Glibc
import TestSupport

/// One line of the rig's record: see `CallRecorder`.
struct CallEvent: Sendable, Hashable, CustomStringConvertible {
  enum Phase: String, Sendable {
    /// The fault strikes at this call.
    case struck = "*"
    case begun = ">"
    case returned = "<"
    /// Not made: failed by the fault.
    case failed = "!"
  }

  let phase: Phase
  let process: Int
  let kind: String
  /// Of the (first) path at that moment; 0: none, or unknown.
  let inode: UInt64
  let path: String
  /// The error where it failed; the second path's inode where it returned; which of the process's faults struck; see
  /// ``range``.
  let note: String

  init?(_ line: Substring) {
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 6, let phase = Phase(rawValue: fields[0]), let process = Int(fields[1]),
      let inode = UInt64(fields[3])
    else { return nil }
    (self.phase, self.process, kind, self.inode, path, note) = (phase, process, fields[2], inode, fields[4], fields[5])
  }

  var description: String { "\(phase.rawValue) \(process) \(kind) \(path) [\(inode)] \(note)" }

  /// Makes names durable, or data.
  var isSync: Bool { kind == "fsync" || kind == "fdatasync" }

  var isForLackOfRoom: Bool { [ENOSPC, EDQUOT].contains { note == String(cString: strerror($0)) } }

  /// The bytes that a write or truncate is about.
  var range: Range<Int64>? {
    let ends = note.split(separator: "-").compactMap { Int64($0) }
    return ends.count == 2 && ["write", "truncate"].contains(kind) ? ends[0]..<ends[1] : nil
  }

  /// The two paths of a rename or link.
  var source: Substring { path.split(separator: " ").first ?? "" }
  var target: Substring { path.split(separator: " ").dropFirst().first ?? "" }

  /// Whether this is the return from that call, however it ended.
  func completes(_ begun: CallEvent) -> Bool {
    phase == .returned && kind == begun.kind && path == begun.path && process == begun.process
  }

  /// What a record holds from byte `offset` on; moves `offset` to its end.
  static func record(at path: String, from offset: inout Int) throws -> [CallEvent] {
    guard fileStatus(path) != nil else { return [] }
    let bytes = try readFile(path)
    defer { offset = bytes.count }
    return String(decoding: bytes[offset...], as: UTF8.self).split(separator: "\n").compactMap { CallEvent($0) }
  }
}

/// Which calls a fault counts; the rig has the same table.
enum CallClass: String, Sendable {
  case any, state, write, room, descriptor, transfer

  func contains(_ kind: String) -> Bool {
    switch self {
    case .any: true
    case .state: !Self.harmless.contains(kind)
    case .write: kind == "write"
    case .room: ["write", "create", "mkdir", "link", "fsync", "fdatasync", "syncfs"].contains(kind)
    case .descriptor: kind == "open" || kind == "create"
    case .transfer: kind == "write" || kind == "read"
    }
  }

  /// Those before and after which a crash leaves the same spool.
  private static let harmless = [
    "open", "read", "stat", "lock", "lease", "list", "close", "statvfs", "inotify_add_watch", "posix_fadvise",
    "mincore",
  ]

  /// How many calls of this class the processes were about to make.
  func count(in events: [CallEvent], of process: Int? = nil) -> Int {
    events.count {
      ($0.phase == .begun || $0.phase == .failed) && contains($0.kind) && (process == nil || process == $0.process)
    }
  }
}

/// What is done to the calls of a class, one after the other.
struct Fault: Sendable, CustomStringConvertible {
  let action: String
  let counted: CallClass
  var argument: String?
  var number = 1

  var description: String { plan(number) }

  /// The rig's spelling, for the `number`-th call from the start of a process.
  func plan(_ number: Int) -> String {
    (["\(action)/\(counted.rawValue)/\(number)"] + (argument.map { [$0] } ?? [])).joined(separator: "/")
  }

  func at(_ number: Int) -> Fault {
    var fault = self
    fault.number = number
    return fault
  }

  /// Neither a kill nor harmless.
  var isError: Bool { !isKill && !isHarmless }
  /// The same error for all calls from one on, until the process ends.
  var isLasting: Bool { action == "fail-from" }
  var isKill: Bool { action.hasPrefix("kill") }
  /// Nobody may notice: calls that are repeated, or gone on with.
  var isHarmless: Bool { action == "short" || argument == "EINTR" }

  static let kills = [
    Fault(action: "kill-before", counted: .state),
    Fault(action: "kill-after", counted: .state),
    // Within the key of a journal line, and within its fields.
    Fault(action: "kill-within", counted: .write, argument: "4"),
    Fault(action: "kill-within", counted: .write, argument: "30"),
  ]

  static let errors = [
    Fault(action: "fail", counted: .any, argument: "EIO"),
    Fault(action: "fail", counted: .state, argument: "ENOSPC"),
    Fault(action: "fail-from", counted: .state, argument: "EIO"),
    Fault(action: "fail-from", counted: .room, argument: "ENOSPC"),
  ]

  /// What else a file system may answer, once and until the process ends; only ever one of two.
  static let rarer = ["fail", "fail-from"].flatMap { action in
    [
      Fault(action: action, counted: .room, argument: "EDQUOT"),
      Fault(action: action, counted: .state, argument: "EROFS"),
      Fault(action: action, counted: .any, argument: "ESTALE"),
      Fault(action: action, counted: .descriptor, argument: "EMFILE"),
      Fault(action: action, counted: .any, argument: "EIO"),
    ]
  }

  static let harmless = [
    Fault(action: "fail", counted: .state, argument: "EINTR"),
    Fault(action: "short", counted: .transfer, argument: "1"),
  ]
}
