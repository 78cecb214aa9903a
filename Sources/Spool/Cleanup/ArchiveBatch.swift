/// Receipts that were read and are archived together: so many that the price of writing an archive anew is shared among
/// them, and so few that they fit into memory.
struct ArchiveBatch {
  /// A receipt as it was read.
  struct Receipt {
    let name: FileName
    let inode: UInt64
    let stamp: FileStatus.Stamp
    let month: ArchiveMonth

    init(_ name: FileName, _ status: FileStatus, _ month: ArchiveMonth) {
      (self.name, inode, stamp, self.month) = (name, status.inode, status.stamp, month)
    }
  }

  /// Bytes of lines, which are gzipped together, and of what comes of that.
  private static let mostLines = 8 << 20
  private static let mostMembers = 8 << 20

  private var receipts: [Receipt] = []
  private var lines: [ArchiveMonth: [UInt8]] = [:]
  private var members: [ArchiveMonth: [UInt8]] = [:]
  private var lineBytes = 0
  private var memberBytes = 0

  /// Whether it has to be written before more is added.
  var isFull: Bool { memberBytes >= Self.mostMembers }

  /// - Throws: ``SpoolError``, ENOMEM.
  mutating func add(_ line: [UInt8], _ receipt: Receipt) throws(SpoolError) {
    receipts.append(receipt)
    lines[receipt.month, default: []] += line
    lineBytes += line.count
    if lineBytes >= Self.mostLines { try pack() }
  }

  /// Empties the batch.
  /// - Returns: the members of gzipped files to add to each archive, and the receipts that are in them.
  /// - Throws: ``SpoolError``, ENOMEM.
  mutating func take() throws(SpoolError) -> (members: [ArchiveMonth: [UInt8]], receipts: [Receipt]) {
    try pack()
    defer { self = ArchiveBatch() }
    return (members, receipts)
  }

  private mutating func pack() throws(SpoolError) {
    for (month, lines) in lines {
      let before = members[month]?.count ?? 0
      try Gzip.append(lines, to: &members[month, default: []])
      memberBytes += (members[month]?.count ?? 0) - before
    }
    lines = [:]
    lineBytes = 0
  }
}
