internal import Glibc

/// A file in the spool's `tmp/` that another program reads or writes, by its path. It is removed when it is let go of;
/// a worker that dies leaves it to `spoolrun clean`.
package final class ScratchFile: Sendable {
  /// For the other program.
  package let path: String
  private let file: SharedFile
  private let spool: Spool

  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    file = try spool.system.create(
      spool.root, spool.temporary(FileName("standing")), O_RDWR | O_EXCL | O_NOFOLLOW
    ).shared()
    path = spool.path(forChild: String(decoding: file.path.bytes, as: UTF8.self))
  }

  deinit {
    // What cannot be removed is removed by the sweep.
    try? spool.system.unlink(spool.root, file.path)
    try? file.close()
  }

  package func write(_ bytes: [UInt8], at offset: Int64) throws(SpoolError) { try file.write(bytes, at: offset) }

  /// Makes it empty again.
  package func clear() throws(SpoolError) { try file.truncate(to: 0) }

  package func contents(limit: Int) throws(SpoolError) -> [UInt8] { try file.read(limit: limit) }
}
