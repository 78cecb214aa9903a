internal import Spool

/// Why a running transfer is ended from outside.
enum JobStop: Error {
  case shutdown, moved, removed, changed
  /// Less than `--min-free` would be left: it waits until there is room.
  case noRoom(String)
  /// The output root is not there, or is none to publish to: it waits until there is one.
  case noOutput(String)
  case failed(SpoolError)

  /// The worker's own doing, and no person's.
  var isOurs: Bool {
    switch self {
    case .shutdown, .noRoom, .noOutput: true
    case .moved, .removed, .changed, .failed: false
    }
  }
}

extension Claim.Standing {
  /// What it means for whoever works on the job; nil while the claim is ours.
  var stop: JobStop? {
    switch self {
    case .ours: nil
    case .moved: .moved
    case .removed: .removed
    case .changed: .changed
    }
  }
}
