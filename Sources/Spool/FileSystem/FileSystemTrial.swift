internal import CLinux
internal import Glibc
internal import SystemPackage

/// Tries a file system with two files in `tmp/`, which no worker looks at.
struct FileSystemTrial {
  private let spool: Spool
  private let system: System
  private let one: Path
  private let other: Path

  init(_ spool: Spool) {
    self.spool = spool
    system = spool.system
    one = spool.temporary(FileName("trial"))
    other = spool.temporary(FileName("trial"))
  }

  func run() throws(SpoolError) -> FileSystemTraits {
    var traits = FileSystemTraits(kind: spool.kind, type: try spool.mountedType() ?? spool.kind.name)
    do throws(SpoolError) {
      try readClocks(&traits)
    } catch  where error.call == .create && error.errno == .invalidArgument {
      traits.takesColons = false
      return traits
    }
    defer { for path in [one, other] { try? system.unlink(spool.root, path) } }
    traits.leases = try leases()
    traits.locks = try locks()
    _ = try system.create(spool.root, other, O_RDWR | O_EXCL | O_NOFOLLOW)
    traits.renamesWithoutReplacing = try renamesWithoutReplacing()
    traits.exchangesNames = try works { () throws(SpoolError) in try system.exchange(spool.root, one, other) }
    traits.links = try canLink()
    traits.unnamedFiles = try works { () throws(SpoolError) in
      _ = try system.openUnnamed(spool.root, Path(.tmp))
    }
    return traits
  }

  /// Makes the first file.
  private func readClocks(_ traits: inout FileSystemTraits) throws(SpoolError) {
    let before = Timestamp.now()
    let file = try system.create(spool.root, one, O_RDWR | O_EXCL | O_NOFOLLOW)
    let made = Timestamp(seconds: try file.status().modified)
    traits.clockOffset = made.offset(from: before, to: .now())
    try file.touch()
    let touched = Timestamp(seconds: try file.status().modified)
    let elapsed = max(0, Timestamp.now().seconds - before.seconds)
    traits.touchOffset = touched.offset(from: made, to: made + elapsed)
  }

  private func leases() throws(SpoolError) -> FileSystemTraits.Leases {
    try leases(beside: system.open(spool.root, one, O_RDWR | O_NOFOLLOW))
  }

  private func leases(beside writer: borrowing OwnedFile) throws(SpoolError) -> FileSystemTraits.Leases {
    let reader = try system.open(spool.root, one, O_RDONLY | O_NOFOLLOW)
    do throws(SpoolError) {
      try reader.probeLease()
      return .blind
    } catch  where error.errno == .resourceTemporarilyUnavailable {
      return .showWriters
    } catch  where error.call == .lease {
      return .missing
    }
  }

  private func locks() throws(SpoolError) -> FileSystemTraits.Locks {
    var first = try system.open(spool.root, one, O_RDWR | O_NOFOLLOW)
    do throws(SpoolError) {
      return try first.lock() ? try locks(beside: first) : .ineffective
    } catch  where error.call == .lock {
      return .missing(error.errno)
    }
  }

  private func locks(beside first: borrowing OwnedFile) throws(SpoolError) -> FileSystemTraits.Locks {
    let second = try system.open(spool.root, one, O_RDONLY | O_NOFOLLOW)
    do throws(SpoolError) {
      return try second.tryLock() ? .ineffective : .exclude
    } catch  where error.errno == .badFileDescriptor {
      return try second.tryLock(LOCK_SH) ? .ineffective : .excludeWriters
    }
  }

  private func renamesWithoutReplacing() throws(SpoolError) -> Bool {
    let free = spool.temporary(FileName("trial"))
    do throws(SpoolError) {
      // Where both names exist, the kernel refuses the move without asking the file system.
      try system.renameNoReplace(spool.root, one, free)
      try system.rename(spool.root, free, one)
      // Has to be refused.
      try system.renameNoReplace(spool.root, one, other)
    } catch  where error.errno == .fileExists {
      return true
    } catch  where error.isUnknownRename {
      return false
    }
    // It replaced the other file. That one is made again for what follows.
    _ = try system.create(spool.root, one, O_RDWR | O_EXCL | O_NOFOLLOW)
    return false
  }

  private func canLink() throws(SpoolError) -> Bool {
    let third = spool.temporary(FileName("trial"))
    let works = try works { () throws(SpoolError) in try system.link(spool.root, one, spool.root, third) }
    if works { try system.unlink(spool.root, third) }
    return works
  }

  /// False where the file system does not support the call.
  private func works(_ body: () throws(SpoolError) -> Void) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      try body()
      return true
    } catch  where Self.unsupported.contains(error.errno) {
      return false
    }
  }

  private static let unsupported: Set<Errno> = [
    .invalidArgument, .noFunction, .notSupported, .notSupportedOnSocket, .notPermitted, .isDirectory,
  ]
}

extension Spool {
  /// Tries what the spool's file system can do. Harmless to workers.
  /// - Throws: ``SpoolError`` where it cannot be tried, such as on a full disk.
  package func tryFileSystem() throws(SpoolError) -> FileSystemTraits { try FileSystemTrial(self).run() }
}

extension Timestamp {
  /// Seconds by which this time is outside of the span in which it was taken by another clock; 0 for less than two,
  /// which may be rounding.
  package func offset(from before: Timestamp, to after: Timestamp) -> Int64 {
    let offset = self < before ? seconds - before.seconds : max(0, seconds - after.seconds)
    return offset.magnitude < 2 ? 0 : offset
  }
}
