internal import Spool
internal import SystemPackage

/// Which calls a fault counts.
enum CallClass: String, CaseIterable {
  case any
  /// Those before and after which a crash leaves different spools.
  case state
  case write
  /// Those that a full disk fails.
  case room
  /// Those that want another descriptor.
  case descriptor
  /// Those that may move fewer bytes than they were asked to.
  case transfer

  func contains(_ kind: Call.Kind) -> Bool {
    switch self {
    case .any: true
    case .state: kind.changesState
    case .write: kind == .write
    case .room: [.write, .create, .mkdir, .link, .fsync, .fdatasync, .syncfs].contains(kind)
    case .descriptor: kind == .open || kind == .create
    case .transfer: kind == .write || kind == .read
    }
  }
}

/// What happens at the n-th call of a class: `ACTION/CLASS/N` or `ACTION/CLASS/N/ARGUMENT`.
struct FaultPlan {
  enum Action {
    case killBefore
    case killAfter
    /// A write of so many bytes, and SIGKILL after it.
    case killWithin(Int)
    case fail(Errno)
    /// The same error for each call of the class from the n-th on.
    case failFrom(Errno)
    case short(Int)
  }

  let action: Action
  let counted: CallClass
  /// From 1.
  let number: Int

  /// Plans with commas between them; nil where one is none.
  static func list(_ text: String) -> [FaultPlan]? {
    let plans = text.split(separator: ",", omittingEmptySubsequences: false).map { FaultPlan(String($0)) }
    return plans.contains { $0 == nil } ? nil : plans.compactMap { $0 }
  }

  /// nil for what is no plan.
  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3 || parts.count == 4, let counted = CallClass(rawValue: parts[1]), let number = Int(parts[2]),
      number > 0, let action = Self.action(parts[0], parts.count == 4 ? parts[3] : nil)
    else { return nil }
    (self.action, self.counted, self.number) = (action, counted, number)
  }

  private static func action(_ name: String, _ argument: String?) -> Action? {
    switch (name, argument.flatMap(Int.init), argument.flatMap { errors[$0] }) {
    case ("kill-before", nil, nil): .killBefore
    case ("kill-after", nil, nil): .killAfter
    case ("kill-within", let length?, _): .killWithin(length)
    case ("short", let length?, _): .short(length)
    case ("fail", _, let errno?): .fail(errno)
    case ("fail-from", _, let errno?): .failFrom(errno)
    default: nil
    }
  }

  private static let errors: [String: Errno] = [
    "EIO": .ioError, "ENOSPC": .noSpace, "EDQUOT": .diskQuotaExceeded, "EINTR": .interrupted,
    "EROFS": .readOnlyFileSystem, "ESTALE": .staleNFSFileHandle, "EMFILE": .tooManyOpenFiles,
  ]
}

extension Call.Kind {
  /// Whether a crash just before or after it leaves the spool in different states.
  var changesState: Bool {
    switch self {
    case .open, .read, .stat, .lock, .lease, .list, .close, .statvfs, .fcntl, .watch, .fadvise, .mincore: false
    default: true
    }
  }
}
