/// How far what was written to a job's data is to be trusted (INTERNALS.md, invariant 4).
package enum Trust: Sendable {
  /// Every fsync(2) succeeded.
  case sound
  /// A worker died with the data. An fsync may have failed before it could record that, and the data was not written
  /// again since.
  case doubtful
  /// An fsync failed: the kernel may have dropped what came after the last checkpoint, and counts it as written.
  case lost(SpoolError)

  /// Whether it is ``doubtful``.
  package var isDoubtful: Bool { if case .doubtful = self { true } else { false } }
  /// Whether it is ``lost(_:)``.
  package var isLost: Bool { if case .lost = self { true } else { false } }

  /// - Parameter error: what an fsync of the job's own file failed with.
  package func joined(with error: SpoolError?) -> Trust {
    guard !isLost, let error else { return self }
    return .lost(error)
  }
}

/// An fsync of a job's data failed.
package struct LostWrites: Error, Sendable {
  /// The error of the fsync.
  package let error: SpoolError

  /// - Parameter error: what fsync(2) or fdatasync(2) returned.
  package init(_ error: SpoolError) { self.error = error }
}
