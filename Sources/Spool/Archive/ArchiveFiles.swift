internal import Glibc
internal import SystemPackage

/// Writing archives. An archive is never changed: a new one takes its name, so that a crash leaves the old or the new
/// one, and whoever reads it reads one of them to its end.
extension Spool {
  /// Makes the directory of the archives if there is none, and its name durable.
  /// - Throws: ``SpoolError``.
  func provideArchive() throws(SpoolError) {
    do throws(SpoolError) {
      try system.makeDirectory(root, Self.archive)
    } catch  where error.errno == .fileExists {
      let status = try system.status(root, Self.archive)
      // Whoever made it may have died before this.
      if status.isDirectory { return try flush(.done).run() }
      guard status.isRegular, let job = JobName(Self.archiveName) else {
        throw SpoolError(call: .mkdir, path: Self.archive.display, errno: .fileExists)
      }
      // The receipt of a job of this name.
      _ = try moveNumbered(Self.archive, job, to: .done, hasData: false)
      try system.makeDirectory(root, Self.archive)
    }
    try flush(.done).run()
  }

  /// Locks the archives for this process, until the file is closed.
  /// - Throws: ``SpoolError``, EWOULDBLOCK while another process has them.
  func lockArchive() throws(SpoolError) -> SharedFile {
    let path = Self.archive(FileName(".lock"))
    var file = try system.create(root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard try file.lock() else {
      throw SpoolError(call: .lock, path: path.display, errno: .wouldBlock, reason: "another clean --archive runs")
    }
    return file.shared()
  }

  /// Makes the names of the archives durable.
  /// - Throws: ``SpoolError``.
  func flushArchive() throws(SpoolError) {
    try openArchive().fsync()
  }

  /// Puts an archive that has more members in the place of the old one. Its contents are durable then, its name is not.
  /// - Throws: ``SpoolError``; then the archive is as it was, or has these members.
  func addToArchive(_ members: [UInt8], of month: ArchiveMonth) throws(SpoolError) {
    let target = Self.archive(month.fileName)
    let draft = Self.archive(FileName(".\(month.fileName.display):\(owner.retagged.text)"))
    let file = try system.create(root, draft, O_RDWR | O_EXCL | O_NOFOLLOW).shared()
    do throws(SpoolError) {
      // Before the old archive is read: where a lock is not seen by all hosts, two processes may be here. If one
      // removes the other's draft, the other's rename fails. If it finds no draft, it reads what the other has renamed.
      try removeDrafts(besides: draft)
      let length = try copyArchive(target, to: file)
      var head: [UInt8] = []
      if length == 0 { try Gzip.append(ArchivedReceipt.head, to: &head) }
      try file.write(head, at: length)
      try file.write(members, at: length + Int64(head.count))
      try file.fsync()
      let status = try file.status()
      try file.close()
      try system.rename(root, draft, target)
      guard try system.status(root, target).isSameFile(as: status) else {
        throw SpoolError(call: .rename, path: target.display, errno: .wouldBlock, reason: "another process replaced it")
      }
    } catch {
      try? system.unlink(root, draft)
      throw error
    }
  }

  /// What processes left that were killed.
  private func removeDrafts(besides own: Path) throws(SpoolError) {
    let stream = DirectoryStream(try openArchive())
    while let name = try stream.next() {
      let path = Self.archive(name)
      guard name.isIgnored, name.bytes.contains(0x3A), path != own else { continue }
      do throws(SpoolError) { try system.unlink(root, path) } catch  where error.errno == .noSuchFileOrDirectory {
      }
    }
  }

  /// - Returns: how many bytes were copied.
  private func copyArchive(_ archive: Path, to file: SharedFile) throws(SpoolError) -> Int64 {
    do throws(SpoolError) {
      let old = try system.open(root, archive, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
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
