/// Something that a clean-up removed, or found and left alone.
package struct CleanupFinding: Sendable {
  package enum Kind: String, Sendable {
    /// Data in `partial/` or set aside in `failed/` whose job is gone.
    case orphan
    /// Data of a failed job whose output is another file.
    case unpublished
    /// A link in `roots/` that `spoolrun get` made, to a directory that is gone.
    case root
    /// A list in `pieces/` that no job names.
    case pieces
    /// A file in `tmp/` that was not written to for 36 hours.
    case stale
    /// A record in `failed/` of something that is gone.
    case record
    case receipt
    /// A directory that got receipts; ``CleanupFinding/count`` of them.
    case archived
    /// An archive of version 0.2: left alone.
    case oldArchive
    /// A receipt whose payload does not exist: left alone.
    case missing
    /// Something in `done/` that names no payload: left alone.
    case noReceipt = "no-receipt"
    /// Something in `cur/` that no worker will take: left alone.
    case stray
    /// A leftover that the kernel does not let us remove (chattr(1)): it stays.
    case stuck
  }

  package let kind: Kind
  /// `DIRECTORY/NAME`, safe for a terminal.
  package let place: String
  /// Of the file; 0 where they are of no interest.
  package let bytes: Int64
  /// For ``Kind/archived``: how many receipts.
  package let count: Int
  /// For ``Kind/missing``: the payload's path, safe for a terminal.
  package let output: String?
  /// For ``Kind/stuck``: why it cannot be removed.
  package let obstacle: SpoolError?

  init(
    _ kind: Kind, _ path: Path, bytes: Int64 = 0, count: Int = 0, output: String? = nil, obstacle: SpoolError? = nil
  ) {
    self.kind = kind
    place = path.display
    (self.bytes, self.count, self.output, self.obstacle) = (bytes, count, output, obstacle)
  }
}
