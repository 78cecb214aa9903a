internal import CLinux
internal import Glibc
internal import SystemPackage

/// The data of a begun job, `partial/NAME.part`: a plain prefix of the payload whose length is the resume point.
package final class PartFile {
  package let spool: Spool
  package private(set) var path: Path
  package let inode: UInt64
  package private(set) var length: UInt64
  /// CRC-32 of all ``length`` bytes; see ``carryOn(from:)``.
  package private(set) var checksum = Checksum()

  let descriptor: Int32
  private let identity: FileStatus
  private var isOpen = true

  private init(spool: Spool, path: Path, descriptor: Int32, status: FileStatus) {
    self.spool = spool
    self.path = path
    self.descriptor = descriptor
    identity = status
    inode = status.inode
    length = UInt64(status.size)
  }

  deinit { if isOpen { System.release(descriptor) } }

  /// Opens or creates the data of `job`; nil when another worker has it, or when what stands there is no file of ours.
  /// - Parameter removeTemporary: removes the second name that a commit may have left of the data with this inode, which nobody else has.
  package static func open(
    _ job: JobName, in spool: Spool, removeTemporary: (_ inode: UInt64) throws(SpoolError) -> Void = { _ in }
  ) throws(SpoolError) -> PartFile? {
    let path = Path(.partial, job.part)
    let descriptor = try spool.system.create(spool.root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    do throws(SpoolError) {
      if try spool.system.lock(descriptor, path) {
        var status = try spool.system.status(descriptor, path: path)
        if status.isRegular, status.links > 1 {
          try removeTemporary(status.inode)
          status = try spool.system.status(descriptor, path: path)
        }
        if status.isRegular, status.links == 1 {
          return PartFile(spool: spool, path: path, descriptor: descriptor, status: status)
        }
      }
    } catch {
      System.release(descriptor)
      throw error
    }
    System.release(descriptor)
    return nil
  }

  /// A new inode with the first `length` bytes of this one, to stand under the same name. This one is left behind: a failed fsync
  /// marked its pages clean (fsync(2)), or a worker of another host may still be writing to it.
  package func rebuilding(to length: UInt64, owner: JobName) -> PartCopy {
    PartCopy(
      system: spool.system, root: spool.root, source: descriptor, path: path, temporary: spool.temporary(owner.part),
      length: length)
  }

  /// The data by its new inode.
  package func replaced(by copy: PartCopy.Result) -> PartFile {
    PartFile(spool: spool, path: path, descriptor: copy.descriptor, status: copy.status)
  }

  /// An empty file that may take this one's place later; until then it is in `tmp/`, where a crash leaves it to the sweep.
  package func beginReplacement(owner: JobName) throws(SpoolError) -> PartFile {
    let temporary = spool.temporary(owner.part)
    let fresh = try spool.system.create(spool.root, temporary, O_RDWR | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      // Locked before it bears the data's name, as whoever opens that expects.
      _ = try spool.system.lock(fresh, temporary)
      let status = try spool.system.status(fresh, path: temporary)
      return PartFile(spool: spool, path: temporary, descriptor: fresh, status: status)
    } catch {
      _ = Glibc.close(fresh)
      try? spool.system.unlink(spool.root, temporary)
      throw error
    }
  }

  /// Gives this file, which ``beginReplacement(owner:)`` made, the name of `old`, which has none from then on.
  /// - Throws: ESTALE where a successor on another host has put its own data there.
  package func takePlace(of old: PartFile) throws(SpoolError) {
    guard try old.isInPlace() else {
      throw SpoolError(call: .rename, path: old.path.display, errno: .staleNFSFileHandle)
    }
    try spool.system.rename(spool.root, path, old.path)
    path = old.path
  }

  /// Adds `bytes` at the end, to the file and to the checksum.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(SpoolError) {
    do throws(SpoolError) {
      try spool.system.write(descriptor, path, bytes, at: Int64(length))
    } catch {
      // What a short write left behind is not in the checksum.
      try? spool.system.truncate(descriptor, path, to: Int64(length))
      throw error
    }
    checksum.update(bytes)
    length += UInt64(bytes.count)
  }

  /// Cuts the data down; the checksum is only known again after ``carryOn(from:)`` or at length 0.
  package func truncate(to newLength: UInt64) throws(SpoolError) {
    guard newLength != length else {
      if newLength == 0 { checksum = Checksum() }
      return
    }
    try spool.system.truncate(descriptor, path, to: Int64(newLength))
    length = newLength
    if newLength == 0 { checksum = Checksum() }
  }

  package var mark: Mark { Mark(offset: length, checksum: checksum) }

  package var cache: DataCache { DataCache(descriptor: descriptor) }

  package var flush: Flush { Flush(dataOf: descriptor, path, identity, spool.system) }

  /// Reads what lies between `mark` and `end` to carry the checksum on; on whichever thread.
  /// - Parameter rewritingFrom: what lies beyond this offset is written again, so that the next fsync makes it durable whatever became of the last.
  package func reading(from mark: Mark, to end: UInt64, rewritingFrom: UInt64? = nil) -> ChecksumReading {
    ChecksumReading(
      system: spool.system, descriptor: descriptor, path: path, start: mark, end: end, rewritingFrom: rewritingFrom)
  }

  /// Sets the time of modification a little back, so that whatever is written from now on moves it, be it within a tick
  /// of the clock.
  /// - Returns: what ``stamp()`` says as long as nobody changes the file.
  package func seal() throws(SpoolError) -> FileStatus.Stamp {
    // FAT counts in steps of two seconds.
    try spool.system.setTimes(descriptor, path, to: Timestamp.now().seconds - 2)
    return try stamp()
  }

  package func stamp() throws(SpoolError) -> FileStatus.Stamp { try spool.system.status(descriptor, path: path).stamp }

  /// The checksum of the whole file, as ``ChecksumReading`` found it.
  package func adopt(_ mark: Mark) {
    precondition(mark.offset == length)
    checksum = mark.checksum
  }

  /// Whether the name still stands for this very file.
  func isInPlace() throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      return try spool.system.status(spool.root, path).isSameFile(as: identity)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// Removes the name, if it still is this file's: a successor's data stays.
  package func remove() throws(SpoolError) {
    if try isInPlace() { try spool.system.unlink(spool.root, path) }
  }

  /// Moves data that is not what the job asked for out of the way, for a person to look at, in place of what stood there.
  package func setAside(_ job: JobName) throws(SpoolError) {
    guard try isInPlace() else { return }
    try spool.system.rename(spool.root, path, Path(.failed, job.part))
  }

  /// Closes the file; close(2) may be the last chance to hear of a failed write.
  package func close() throws(SpoolError) {
    guard isOpen else { return }
    isOpen = false
    try spool.system.close(descriptor, path)
  }
}

/// A copy of a job's data that takes its place.
package struct PartCopy: Sendable {
  package struct Result: Sendable {
    let descriptor: Int32
    let status: FileStatus
  }

  let system: System
  let root: Int32
  let source: Int32
  let path: Path
  let temporary: Path
  let length: UInt64

  /// On whichever thread: gigabytes take minutes.
  package func run() throws(SpoolError) -> Result {
    let fresh = try system.create(root, temporary, O_RDWR | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      _ = try system.lock(fresh, temporary)
      try system.readBlocks(source, path, 0..<length) { (bytes, offset) throws(SpoolError) in
        try system.write(fresh, temporary, bytes, at: Int64(offset))
      }
      // The checkpoint that vouches for these bytes must stay true of the new inode.
      try system.fdatasync(fresh, temporary)
      let status = try system.status(fresh, path: temporary)
      // A copy can take minutes: a successor on another host may have put its own there.
      let old = try system.status(source, path: path)
      guard try system.status(root, path).isSameFile(as: old) else {
        throw SpoolError(call: .rename, path: path.display, errno: .staleNFSFileHandle)
      }
      try system.rename(root, temporary, path)
      return Result(descriptor: fresh, status: status)
    } catch {
      System.release(fresh)
      try? system.unlink(root, temporary)
      throw error
    }
  }
}

/// What the page cache holds of a job's data.
package struct DataCache: Sendable {
  let descriptor: Int32

  /// Gives back what holds the bytes before `offset`, which are on disk (posix_fadvise(2)): so a long download takes no more of the machine's memory than a short
  /// one, pushes out nothing that others use, and writes to memory that it has used before. Advice: where it is not taken, nothing is lost.
  /// - Parameter offset: greater than 0.
  package func forget(before offset: UInt64) {
    // A length of 0 would mean all.
    precondition(offset > 0)
    _ = posix_fadvise(descriptor, 0, off_t(offset), POSIX_FADV_DONTNEED)
  }
}

/// A stretch of a file to run the checksum over.
package struct ChecksumReading: Sendable {
  let system: System
  let descriptor: Int32
  let path: Path
  let start: Mark
  let end: UInt64
  var rewritingFrom: UInt64?

  /// The mark at the end of the stretch; EIO where the file is shorter.
  package func run() throws(SpoolError) -> Mark {
    guard start.offset < end else { return start }
    var checksum = start.checksum
    try system.readBlocks(descriptor, path, start.offset..<end) { (bytes, offset) throws(SpoolError) in
      checksum.update(bytes)
      guard let rewritingFrom, rewritingFrom < offset + UInt64(bytes.count) else { return }
      let known = rewritingFrom > offset ? Int(rewritingFrom - offset) : 0
      try system.write(
        descriptor, path, UnsafeRawBufferPointer(rebasing: bytes[known...]), at: Int64(offset) + Int64(known))
    }
    return Mark(offset: end, checksum: checksum)
  }
}
