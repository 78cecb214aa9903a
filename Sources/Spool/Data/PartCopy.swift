internal import Glibc
internal import SystemPackage

/// A copy of a job's data that takes its place.
package struct PartCopy: Sendable {
  /// The new file, for ``PartFile/replaced(by:)``.
  package struct Result: Sendable {
    let file: SharedFile
    let status: FileStatus
  }

  let spool: Spool
  let source: SharedFile
  let temporary: Path
  /// Bytes to copy.
  let length: UInt64

  /// Copies the data and gives the copy its name; on any thread, because gigabytes take minutes.
  /// - Throws: ``SpoolError``, ESTALE where a successor on another host has put its own data there.
  package func run() throws(SpoolError) -> Result {
    let system = spool.system
    var fresh = try system.create(spool.root, temporary, O_RDWR | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      _ = try fresh.lock()
      try source.readBlocks(0..<length) { (bytes, offset) throws(SpoolError) in
        try fresh.write(bytes, at: Int64(offset))
      }
      // The checkpoint of these bytes must also be true of the new inode.
      try fresh.fdatasync()
      let status = try fresh.status()
      let old = try source.status()
      guard try system.status(spool.root, source.path).isSameFile(as: old) else {
        throw SpoolError(call: .rename, path: source.path.display, errno: .staleNFSFileHandle)
      }
      try system.rename(spool.root, temporary, source.path)
      fresh.path = source.path
      return Result(file: fresh.shared(), status: status)
    } catch {
      try? system.unlink(spool.root, temporary)
      throw error
    }
  }
}
