internal import Glibc
internal import SystemPackage

/// The data of a begun job, `partial/NAME.part`: a plain prefix of the payload whose length is the resume point.
package final class PartFile {
  let spool: Spool
  let file: SharedFile
  /// The inode number of the file, by which the journal knows it.
  package let inode: UInt64
  package private(set) var length: UInt64
  /// The digests of all ``length`` bytes; see ``adopt(_:)``.
  private var digests: RunningDigests
  package private(set) var algorithms: Set<DigestAlgorithm>
  package let pieces: PieceList?

  /// Whether the call that opened it has made it, so that no other worker can have had it open before.
  package let isNew: Bool

  /// Whether it has a name elsewhere, by which somebody may change it. Then it has to be replaced
  /// (``rebuilding(to:owner:)``).
  package var isShared: Bool { identity.links > 1 }

  private let identity: FileStatus

  private convenience init?(
    _ found: Found, _ spool: Spool, _ algorithms: Set<DigestAlgorithm>, _ pieces: PieceList?, own: UInt64? = nil
  ) {
    guard found.status.isRegular, found.status.links == 1 || found.status.inode == own else { return nil }
    self.init(spool: spool, file: found.file, status: found.status, isNew: found.isNew, algorithms, pieces)
  }

  private init(
    spool: Spool, file: SharedFile, status: FileStatus, isNew: Bool = true, _ algorithms: Set<DigestAlgorithm>,
    _ pieces: PieceList?
  ) {
    (self.spool, self.isNew, self.pieces) = (spool, isNew, pieces)
    let states = DigestStates(algorithms, pieces: pieces)
    self.algorithms = states.algorithms
    digests = RunningDigests(states)
    self.file = file
    identity = status
    inode = status.inode
    length = UInt64(status.size)
  }

  /// Relative to the spool.
  package var path: Path { file.path }

  /// Opens or creates the data of `job` and locks it.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  /// - Parameter pieces: by which its pieces are checked.
  /// - Returns: nil when another worker has the data, or when something of that name is not a file of ours.
  package static func open(
    _ job: JobName, in spool: Spool, digests algorithms: Set<DigestAlgorithm> = [], pieces: PieceList? = nil
  ) throws(SpoolError) -> PartFile? {
    try lock(job, in: spool, isOwnersFrozen: false).flatMap { PartFile($0, spool, algorithms, pieces) }
  }

  /// The same for data of which an interrupted commit may have left a second name.
  /// - Parameter own: the inode that the job's journal names. It is the job's own although it has another name: a hook
  ///   may have moved the payload.
  /// - Parameter isOwnersFrozen: whether another worker's lock does not count. Then the file may only be read, and has
  ///   to be replaced (``rebuilding(to:owner:)``).
  /// - Parameter removeTemporary: removes the second name of the data with this inode; it is called under the lock.
  /// - Throws: ``SpoolError``; what `removeTemporary` throws.
  package static func open(
    _ job: JobName, in spool: Spool, digests algorithms: Set<DigestAlgorithm> = [], pieces: PieceList? = nil,
    own: UInt64? = nil, isOwnersFrozen: Bool = false, removeTemporary: (_ inode: UInt64) throws -> Void
  ) throws -> PartFile? {
    guard var found = try lock(job, in: spool, isOwnersFrozen: isOwnersFrozen) else { return nil }
    if found.status.isRegular, found.status.links > 1 {
      try removeTemporary(found.status.inode)
      found.status = try found.file.status()
    }
    return PartFile(found, spool, algorithms, pieces, own: own)
  }

  /// A file that was found at the data's name, and locked.
  private typealias Found = (file: SharedFile, status: FileStatus, isNew: Bool)

  private static func lock(_ job: JobName, in spool: Spool, isOwnersFrozen: Bool) throws(SpoolError) -> Found? {
    let path = Path(.partial, job.part)
    let flags = O_RDWR | Spool.jobFlags
    var isNew = true
    var file: OwnedFile
    do throws(SpoolError) {
      file = try spool.system.create(spool.root, path, flags | O_EXCL)
    } catch  where error.errno == .fileExists {
      isNew = false
      do throws(SpoolError) {
        file = try spool.system.create(spool.root, path, flags)
      } catch  where error.isNoRegularFile {
        return nil
      }
    }
    guard try file.lock() || isOwnersFrozen else { return nil }
    var status = try file.status()
    if status.isRegular, status.links > 1 {
      try removeTemporaryNames(of: job.part, status, in: spool)
      status = try file.status()
    }
    return (file.shared(), status, isNew)
  }

  /// The rename of new data from `tmp/` to its place, cut by a power failure: btrfs can have made the new name durable
  /// and kept the first, which goes.
  /// - Parameter status: of the file that has the name `data` in `partial/`.
  private static func removeTemporaryNames(of data: FileName, _ status: FileStatus, in spool: Spool)
    throws(SpoolError)
  {
    let stream = try spool.stream(.tmp)
    while let name = try stream.next() {
      guard name.bytes.starts(with: data.bytes + [0x3A]) else { continue }
      try spool.system.unlink(spool.root, Path(.tmp, name), of: status)
    }
  }

  /// A new inode with the first `length` bytes of this one, which takes its name. This one is left behind: a failed
  /// fsync marked its pages clean (fsync(2)), or a worker of another host may still be writing to it.
  package func rebuilding(to length: UInt64, owner: JobName) -> PartCopy {
    PartCopy(spool: spool, source: file, temporary: spool.temporary(owner.part), length: length)
  }

  package func replaced(by copy: PartCopy.Result) -> PartFile {
    PartFile(spool: spool, file: copy.file, status: copy.status, algorithms, pieces)
  }

  /// An empty file that may take this one's place later. Until then it is in `tmp/`, where the clean-up finds it after
  /// a crash.
  package func beginReplacement(owner: JobName) throws(SpoolError) -> PartFile {
    var fresh = try spool.system.createNew(spool.root, spool.temporary(owner.part))
    do throws(SpoolError) {
      // Locked before it has the data's name, as those who open the data expect.
      _ = try fresh.lock()
      let status = try fresh.status()
      return PartFile(spool: spool, file: fresh.shared(), status: status, algorithms, pieces)
    } catch {
      try? spool.system.unlink(spool.root, fresh.path)
      throw error
    }
  }

  /// Gives this file, which ``beginReplacement(owner:)`` made, the name of `old`, which has none from then on.
  /// - Throws: ``SpoolError``, ESTALE where a successor on another host has put its own data there.
  package func takePlace(of old: PartFile) throws(SpoolError) {
    guard try old.isInPlace() else {
      throw SpoolError(call: .rename, path: old.path.display, errno: .staleNFSFileHandle)
    }
    try spool.system.rename(spool.root, path, old.path)
    file.path = old.path
  }

  /// Adds `bytes` at the end of the file, and to the digests.
  /// - Parameter block: the memory that `bytes` are in, if it is a block. The digests may hold it after this returns.
  /// - Throws: ``SpoolError``; the file is as before then.
  package func append(_ bytes: UnsafeRawBufferPointer, in block: Block? = nil) throws(SpoolError) {
    do throws(SpoolError) {
      try file.write(bytes, at: Int64(length))
    } catch {
      // What a short write left behind is not in the digests.
      try? file.truncate(to: Int64(length))
      throw error
    }
    digests.update(bytes, in: block)
    length += UInt64(bytes.count)
  }

  /// Writes bytes in the place of others. The digests are known again after ``adopt(_:)``.
  package func replace(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SpoolError) {
    precondition(offset + UInt64(bytes.count) <= length)
    try file.write(bytes, at: Int64(offset))
  }

  package var pieceReading: PieceReading? { pieces.map { PieceReading(list: $0, file: file, size: length) } }

  /// Which pieces are wrong, as far as is known without waiting.
  package var wrongPieces: WrongPieces { digests.wrongPieces }

  /// More bytes may have to wait for the digests of those before them.
  package var isFull: Bool { digests.isFull }

  /// How many of `bytes` are those of the file from `offset` on.
  /// - Throws: ``SpoolError``, EIO where the file is shorter.
  package func agreement(of bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SpoolError) -> Int {
    var agreed = 0
    try file.readBlocks(offset..<offset + UInt64(bytes.count)) { (found, at) throws(SpoolError) in
      // A block before has differed.
      guard offset + UInt64(agreed) == at else { return }
      let wanted = UnsafeRawBufferPointer(rebasing: bytes[agreed..<agreed + found.count])
      agreed +=
        memcmp(found.baseAddress!, wanted.baseAddress!, found.count) == 0
        ? found.count : zip(found, wanted).prefix { $0 == $1 }.count
    }
    return agreed
  }

  /// Cuts the data to `newLength` bytes. The digests are known again after ``adopt(_:)``, or at length 0.
  package func truncate(to newLength: UInt64) throws(SpoolError) {
    if newLength == length { return }
    try file.truncate(to: Int64(newLength))
    length = newLength
    if newLength == 0 { digests = RunningDigests(zero.states) }
  }

  /// Counts what is behind the mark as no data any more. ``cutDisowned()`` removes it.
  package func disown(from mark: Mark) {
    length = mark.offset
    adopt(mark)
  }

  package func cutDisowned() throws(SpoolError) { try file.truncate(to: Int64(length)) }

  /// Computes these digests beside CRC-32 from now on. There must be no data yet.
  package func compute(_ algorithms: Set<DigestAlgorithm>) {
    precondition(length == 0)
    self.algorithms = algorithms
    adopt(zero)
  }

  /// The beginning, for a reading that computes the same digests.
  package var zero: Mark { .zero(algorithms, pieces: pieces) }

  /// The end of the data, with the digests of all before it; waits a few milliseconds for those that are computed on
  /// another thread.
  package var mark: Mark { Mark(offset: length, states: digests.states) }

  package var cache: DataCache { DataCache(file: file) }

  package var descriptor: Int32 { file.number }

  package var flush: Flush { Flush(dataOf: file, identity) }

  /// Reads the data between `mark` and `end` to continue the digests; on any thread.
  /// - Parameter rewritingFrom: the data beyond this offset is written again, so that the next fsync makes it durable
  ///   whatever became of the last one.
  package func reading(from mark: Mark, to end: UInt64, rewritingFrom: UInt64? = nil) -> ChecksumReading {
    ChecksumReading(file: file, start: mark, end: end, rewritingFrom: rewritingFrom)
  }

  /// Sets the time of modification a little back, so that any later write changes it, even within a tick of the clock.
  /// - Returns: what ``stamp()`` returns as long as the file is not changed.
  package func seal() throws(SpoolError) -> FileStatus.Stamp {
    // FAT counts in steps of two seconds.
    try file.setTimes(to: Timestamp.now().seconds - 2)
    return try stamp()
  }

  /// Gives the data the permissions that the payload is to have; nothing for nil. A later worker of the same user can
  /// still open it.
  package func set(_ mode: PayloadMode?) throws(SpoolError) { if let mode { try file.setPermissions(mode.bits) } }

  package func stamp() throws(SpoolError) -> FileStatus.Stamp { try file.status().stamp }

  /// Takes the digests of the whole file, as ``ChecksumReading`` found it.
  package func adopt(_ mark: Mark) {
    precondition(mark.offset == length)
    algorithms = mark.states.algorithms
    digests = RunningDigests(mark.states)
  }

  /// Counts bytes that were copied here, up to `mark`, as data.
  package func take(_ mark: Mark) {
    length = mark.offset
    adopt(mark)
  }

  func isInPlace() throws(SpoolError) -> Bool {
    try spool.system.statusIfPresent(spool.root, path)?.isSameFile(as: identity) == true
  }

  /// Removes the name, if it is still this file's: a successor's data stays.
  package func remove() throws(SpoolError) { if try isInPlace() { try spool.system.unlinkIfPresent(spool.root, path) } }

  /// Moves data that is not what the job asked for to `failed/`, for a person to look at. It replaces earlier such
  /// data.
  package func setAside(_ job: JobName) throws(SpoolError) {
    guard try isInPlace() else { return }
    try spool.system.rename(spool.root, path, Path(.failed, job.part))
  }

  /// Closes the file; nothing where it is closed.
  /// - Throws: ``SpoolError``: close(2) may be the last chance to hear of a failed write.
  package func close() throws(SpoolError) { try file.close() }
}

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
  let length: UInt64

  /// Copies the data and gives the copy its name; on any thread, because gigabytes take minutes.
  /// - Throws: ``SpoolError``, ESTALE where a successor on another host has put its own data there.
  package func run() throws(SpoolError) -> Result {
    let system = spool.system
    var fresh = try system.createNew(spool.root, temporary)
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

/// A stretch of a file to run the digests over.
package struct ChecksumReading: Sendable {
  let file: SharedFile
  let start: Mark
  /// Where the stretch ends, in bytes from the file's start.
  let end: UInt64
  var rewritingFrom: UInt64?
  private var copy: SharedFile?

  init(file: SharedFile, start: Mark, end: UInt64, rewritingFrom: UInt64? = nil) {
    (self.file, self.start, self.end, self.rewritingFrom) = (file, start, end, rewritingFrom)
  }

  /// The same reading, whose bytes become those of `part`, which has none. See ``PartFile/take(_:)``.
  package func copied(to part: PartFile) -> ChecksumReading {
    var result = self
    result.copy = part.file
    return result
  }

  /// Reads the stretch; on any thread.
  /// - Parameter note: called with each block that was read.
  /// - Returns: the mark at its end.
  /// - Throws: ``SpoolError``, EIO where the file is shorter.
  package func run(_ note: (UnsafeRawBufferPointer) -> Void = { _ in }) throws(SpoolError) -> Mark {
    guard start.offset < end else { return start }
    var states = start.states
    try file.readBlocks(start.offset..<end) { (bytes, offset) throws(SpoolError) in
      states.update(bytes)
      note(bytes)
      try copy?.write(bytes, at: Int64(offset))
      guard let rewritingFrom, rewritingFrom < offset + UInt64(bytes.count) else { return }
      let known = rewritingFrom > offset ? Int(rewritingFrom - offset) : 0
      try file.write(UnsafeRawBufferPointer(rebasing: bytes[known...]), at: Int64(offset) + Int64(known))
    }
    return Mark(offset: end, states: states)
  }
}

package struct DataCache: Sendable {
  let file: SharedFile

  /// Gives back the cached pages before `offset`, which are on disk (posix_fadvise(2)). So a long download takes no
  /// more of the machine's memory than a short one, pushes out nothing that others use, and writes to memory that it
  /// has used before.
  /// - Parameter offset: in bytes, greater than 0.
  package func forget(before offset: UInt64) {
    // A length of 0 would mean all.
    precondition(offset > 0)
    // Advice: reading works as well where it is not taken.
    try? file.forgetCache(first: offset)
  }

  /// Whether it has all pages of `range`, which is not empty; false if that cannot be known.
  package func has(_ range: Range<UInt64>) -> Bool { (try? file.isCached(range)) ?? false }
}
