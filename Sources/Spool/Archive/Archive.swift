internal import Glibc
internal import SystemPackage

/// The archives of receipts in `done/archive/`. An archive is never changed: a new one takes its name, so that a crash
/// leaves the old or the new one, and whoever reads it reads one of them to its end.
struct Archive {
  let spool: Spool

  static let directory = Path(.done, Spool.archiveName)

  static func path(_ name: FileName) -> Path { Path(directory.bytes + [0x2F] + name.bytes) }

  private func open() throws(SpoolError) -> OwnedFile {
    try spool.system.open(spool.root, Self.directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  /// The names of the archives, in their order. Other files in the directory are left alone.
  func names() throws(SpoolError) -> [FileName] {
    do throws(SpoolError) {
      let stream = DirectoryStream(try open())
      var names: [FileName] = []
      while let name = try stream.next() {
        if !name.isIgnored, name.bytes.suffix(7).elementsEqual(".tsv.gz".utf8) { names.append(name) }
      }
      return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    } catch  where error.errno == .noSuchFileOrDirectory || error.isNoRegularFile || error.errno == .notDirectory {
      // A receipt may have the name.
      return []
    }
  }

  /// Makes the directory of the archives if there is none, and its name durable.
  func provide() throws(SpoolError) {
    do throws(SpoolError) {
      try spool.system.makeDirectory(spool.root, Self.directory)
    } catch  where error.errno == .fileExists {
      let status = try spool.system.status(spool.root, Self.directory)
      // Whoever made it may have died before this.
      if status.isDirectory { return try spool.flush(.done).run() }
      guard status.isRegular, let job = JobName(Spool.archiveName) else {
        throw SpoolError(call: .mkdir, path: Self.directory.display, errno: .fileExists)
      }
      // The receipt of a job of this name.
      _ = try JobMoves(spool).moveNumbered(Self.directory, job, to: .done, hasData: false)
      try spool.system.makeDirectory(spool.root, Self.directory)
    }
    try spool.flush(.done).run()
  }

  /// Locks the archives for this process, until the file is closed.
  /// - Throws: ``SpoolError``, EWOULDBLOCK while another process has them.
  func lock() throws(SpoolError) -> SharedFile {
    let path = Self.path(FileName(".lock"))
    var file = try spool.system.create(spool.root, path, O_RDWR | Spool.jobFlags)
    guard try file.lock() else {
      throw SpoolError(call: .lock, path: path.display, errno: .wouldBlock, reason: "another clean --archive runs")
    }
    return file.shared()
  }

  /// Makes the names of the archives durable.
  func flush() throws(SpoolError) {
    try open().fsync()
  }

  /// Puts an archive that has more members in the place of the old one. Its contents are durable then, its name is not.
  /// - Throws: ``SpoolError``; then the archive is as it was, or has these members.
  func add(_ members: [UInt8], of month: ArchiveMonth) throws(SpoolError) {
    let target = Self.path(month.fileName)
    let draft = Self.path(FileName(".\(month.fileName.display):\(spool.scratchOwner)"))
    let file = try spool.system.createNew(spool.root, draft).shared()
    do throws(SpoolError) {
      // Before the old archive is read: where a lock is not seen by all hosts, two processes may be here. If one
      // removes the other's draft, the other's rename fails. If it finds no draft, it reads what the other has renamed.
      try removeDrafts(besides: draft)
      let length = try copy(target, to: file)
      var head: [UInt8] = []
      if length == 0 { try Gzip.append(ArchivedReceipt.head, to: &head) }
      try file.write(head, at: length)
      try file.write(members, at: length + Int64(head.count))
      try file.fsync()
      let status = try file.status()
      try file.close()
      try spool.system.rename(spool.root, draft, target)
      guard try spool.system.status(spool.root, target).isSameFile(as: status) else {
        throw SpoolError(call: .rename, path: target.display, errno: .wouldBlock, reason: "another process replaced it")
      }
    } catch {
      try? spool.system.unlink(spool.root, draft)
      throw error
    }
  }

  /// What processes left that were killed.
  private func removeDrafts(besides own: Path) throws(SpoolError) {
    let stream = DirectoryStream(try open())
    while let name = try stream.next() {
      let path = Self.path(name)
      guard name.isIgnored, name.bytes.contains(0x3A), path != own else { continue }
      try spool.system.unlinkIfPresent(spool.root, path)
    }
  }

  /// - Returns: how many bytes were copied.
  private func copy(_ archive: Path, to file: SharedFile) throws(SpoolError) -> Int64 {
    do throws(SpoolError) {
      let old = try spool.system.open(spool.root, archive, O_RDONLY | Spool.jobFlags)
      let size = try old.status().size
      try old.readBlocks(0..<UInt64(clamping: size)) { (bytes, offset) throws(SpoolError) in
        try file.write(bytes, at: Int64(offset))
      }
      return size
    } catch  where error.call == .open && error.errno == .noSuchFileOrDirectory {
      return 0
    }
  }
}

/// Reads receipts from a spool's archives, one after the other. An archive is replaced as a whole, so each is read as
/// it was when it was opened. A caller that also reads `done/` reads `done/` first: then a receipt that is archived
/// meanwhile is seen twice, and not missed.
package final class ArchiveStream {
  private let spool: Spool
  private let since: Int64
  private let names: Set<FileName>?
  private var rest: ArraySlice<FileName>
  private var lines: ArchiveLines?

  /// Of all archives.
  /// - Parameters:
  ///   - since: receipts that were last modified earlier are left out, in seconds since the epoch.
  ///   - names: receipts of other names are left out; nil for all.
  package convenience init(_ spool: Spool, since: Int64 = .min, named names: Set<FileName>? = nil) throws(SpoolError) {
    self.init(spool, try Archive(spool: spool).names(), since: since, named: names)
  }

  /// Of these archives.
  init(_ spool: Spool, _ archives: [FileName], since: Int64 = .min, named names: Set<FileName>? = nil) {
    (self.spool, self.since, self.names) = (spool, since, names)
    rest = archives[...]
  }

  /// The path of the archive that the last receipt is from, safe for a terminal.
  package var place: String { lines?.path.display ?? Archive.directory.display }

  /// The next receipt; nil at the end.
  /// - Throws: ``SpoolError``; EBADMSG, with file and line, where an archive is damaged. The next call goes on with the
  ///   next archive.
  package func next() throws(SpoolError) -> ArchivedReceipt? {
    while true {
      if lines == nil {
        guard let name = rest.popFirst() else { return nil }
        lines = try open(name)
      }
      do throws(SpoolError) {
        while let line = try lines?.next() {
          guard let receipt = try read(line), receipt.modified.seconds >= since else { continue }
          return receipt
        }
        lines = nil
      } catch {
        lines = nil
        throw error
      }
    }
  }

  /// - Returns: nil if it has gone, or nothing in it can be wanted.
  private func open(_ name: FileName) throws(SpoolError) -> ArchiveLines? {
    do throws(SpoolError) {
      let path = Archive.path(name)
      let file = try spool.system.open(spool.root, path, O_RDONLY | Spool.jobFlags)
      let status = try file.status()
      // It is newer than all that is in it.
      guard status.isRegular, since == .min || status.modified >= since else { return nil }
      return try ArchiveLines(file.shared())
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  private func read(_ line: UnsafeRawBufferPointer) throws(SpoolError) -> ArchivedReceipt? {
    do throws(Defect) { return try ArchivedReceipt.read(line, named: names) } catch {
      throw lines?.damage(error.reason) ?? SpoolError(call: .read, path: place, errno: .badMessage)
    }
  }
}

/// The lines of an archive, each valid until the next is read.
private final class ArchiveLines {
  let path: Path
  private let gzip: GzipReader
  private var room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
  /// What is in ``room`` and was not handed out.
  private var pending = 0..<0
  private var number = 0

  init(_ file: SharedFile) throws(SpoolError) {
    path = file.path
    gzip = try GzipReader(file)
  }

  deinit { room.deallocate() }

  /// Without its newline; nil at the end.
  func next() throws(SpoolError) -> UnsafeRawBufferPointer? {
    var searched = 0
    while true {
      let found = UnsafeRawBufferPointer(rebasing: room[pending])
      if let base = found.baseAddress, let newline = memchr(base + searched, 0x0A, found.count - searched) {
        let length = UnsafeRawPointer(newline) - base
        pending = pending.lowerBound + length + 1..<pending.upperBound
        number += 1
        return UnsafeRawBufferPointer(rebasing: found[..<length])
      }
      searched = pending.count
      if searched > ArchivedReceipt.longest { throw damage("it is too long", to: number + 1) }
      makeRoom()
      let count = try fill()
      if count == 0 {
        if pending.isEmpty { return nil }
        throw damage("it does not end", to: number + 1)
      }
      pending = 0..<pending.upperBound + count
    }
  }

  private func makeRoom() {
    let line = UnsafeRawBufferPointer(rebasing: room[pending])
    if line.count > room.count / 2 {
      let more = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * room.count, alignment: 16)
      more.copyMemory(from: line)
      room.deallocate()
      room = more
    } else {
      room.copyMemory(from: line)
    }
    pending = 0..<line.count
  }

  private func fill() throws(SpoolError) -> Int {
    do throws(SpoolError) {
      return try gzip.read(into: UnsafeMutableRawBufferPointer(rebasing: room[pending.upperBound...]))
    } catch  where error.errno == .badMessage {
      throw damage(error.reason ?? "", to: number + 1)
    }
  }

  /// - Parameter line: nil for the one that was handed out last.
  func damage(_ reason: String, to line: Int? = nil) -> SpoolError {
    SpoolError(call: .read, path: "\(path.display) line \(line ?? number)", errno: .badMessage, reason: reason)
  }
}
