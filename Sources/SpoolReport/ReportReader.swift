package import Spool

/// Reads the journals and receipts of a spool, and its archives. It changes nothing.
package struct ReportReader {
  private let spool: Spool

  /// How many waiting jobs are read; of others only their age counts.
  private static let waitingRead = 10_000

  /// Of `spool`.
  package init(_ spool: Spool) { self.spool = spool }

  /// - Parameter since: what happened before is left out; nil: nothing.
  /// - Throws: ``SpoolError``, EACCES if this user may not read one of the directories.
  package func read(since: Timestamp?, now: Timestamp) throws(SpoolError) -> ReportFacts {
    var facts = ReportFacts(since: since, now: now)
    // A job that moves while the directories are read is seen in the next one, by the same inode.
    var seen: Set<UInt64> = []
    var receipts = SeenReceipts()
    // Of what is no job, by the name of its record.
    let failed = try spool.list(.failed)
    let records = Set(failed.filter(\.hasRecordSuffix))
    let subjects = Dictionary(failed.filter { records.contains($0.record) }.map { ($0.record, $0) }) { one, _ in one }
    for directory in [Directory.hold, .new, .urgent, .cur, .partial, .cur, .failed, .done] {
      // A receipt is the last that is written to a job.
      let from = directory == .done ? since?.seconds ?? .min : .min
      let most = directory.takesDrops ? Self.waitingRead : .max
      try spool.eachJob(in: directory, modifiedSince: from, reading: most) { (file) throws(SpoolError) in
        if directory != .done, !seen.insert(file.status.inode).inserted { return }
        if directory == .done, seen.contains(file.status.inode) { return }
        if directory == .done { receipts.insert(file.name, file.bytes) }
        let name = directory == .cur ? ClaimName(file.name)?.job.fileName ?? file.name : file.name
        var record = JobRecord(
          name, in: directory, bytes: file.bytes, changed: Timestamp(seconds: file.lastChange(at: now)))
        if directory == .failed, let subject = subjects[name] { (record.name, record.isRecord) = (subject, true) }
        facts.add(record)
      }
    }
    let archive = try ArchiveStream(spool, since: since?.seconds ?? .min)
    while let receipt = try archive.next() {
      if receipts.contains(receipt) { continue }
      let record = receipt.bytes.withUnsafeBytes {
        JobRecord(receipt.name, in: .done, bytes: $0, changed: min(receipt.modified, now))
      }
      facts.add(record)
    }
    return facts
  }
}
