internal import Glibc
internal import SystemPackage

/// Where a job file is: a directory of the spool and its name there, which in `cur/` ends in the owner.
package struct JobPlace: Hashable, Sendable {
  /// The directory that the job is in: its state.
  package let directory: Directory
  /// The file's name there; in `cur` with the owner's.
  package let name: FileName
  /// Distinguishes one job that was seen twice while it moved from two jobs of one name.
  let inode: UInt64

  /// `DIRECTORY/NAME`, safe for a terminal.
  package var display: String { path.display }

  /// The name of its job.
  package var job: FileName { directory == .cur ? ClaimName(name)?.job.fileName ?? name : name }

  var path: Path { Path(directory, name) }
}

extension Spool {
  /// Splits what a person calls a job: `NAME`, `DIRECTORY/NAME`, or the path of its file, as a shell completes it.
  /// Anything else is returned as a name, which no job has.
  /// - Throws: ``SpoolError``.
  package func split(_ bytes: [UInt8]) throws(SpoolError) -> (directory: Directory?, name: FileName) {
    let whole: (Directory?, FileName) = (nil, FileName(bytes))
    guard let slash = bytes.lastIndex(of: 0x2F) else { return whole }
    let outer = bytes[..<slash].lastIndex(of: 0x2F)
    let middle = bytes[(outer.map { $0 + 1 } ?? 0)..<slash]
    guard let directory = Directory(rawValue: String(decoding: middle, as: UTF8.self)) else { return whole }
    if let outer, try !isRoot(Array(bytes[..<outer])) { return whole }
    return (directory, FileName(Array(bytes[(slash + 1)...])))
  }

  /// The same, and a claim's file name in `cur` for its job. A job's own name may look like a claim's, so this applies
  /// only if such a file exists.
  /// - Throws: ``SpoolError``.
  package func splitClaim(_ bytes: [UInt8]) throws(SpoolError) -> (directory: Directory?, name: FileName) {
    let (directory, name) = try split(bytes)
    if directory == .cur, name.isEntry, let claim = ClaimName(name), try status(.cur, name) != nil {
      return (directory, claim.job.fileName)
    }
    return (directory, name)
  }

  /// Whether a path leads to this spool.
  private func isRoot(_ path: [UInt8]) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      // Through a link as well.
      return try system.status(AT_FDCWD, Path(path + Array("/.".utf8)))
        .isSameFile(as: directory.status())
    } catch  where [.noSuchFileOrDirectory, .notDirectory, .permissionDenied].contains(error.errno) {
      return false
    }
  }

  /// The directories that contain jobs, in the order in which a job passes through them: a job that moves during a look
  /// is seen twice rather than not at all.
  static let jobDirectories: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .done]

  /// The places of the jobs of this name, by one look: a job that moves meanwhile may be missed or seen twice.
  /// - Throws: ``SpoolError``.
  package func places(of name: FileName, in directories: [Directory]? = nil) throws(SpoolError) -> [JobPlace] {
    var places: [JobPlace] = []
    for directory in directories ?? Self.jobDirectories + [.standing] {
      let names = directory == .cur ? try list(.cur).filter { ClaimName($0)?.job.fileName == name } : [name]
      for name in names {
        guard let status = try self.status(directory, name) else { continue }
        // The archives.
        if directory == .done, name == Self.archiveName, status.isDirectory { continue }
        places.append(JobPlace(directory: directory, name: name, inode: status.inode))
      }
    }
    return places
  }

  /// Whether there is a job of this name, other than a done one. Looks in the order in which a job moves, and in
  /// reverse: a job that moves in either direction is seen by one of the two.
  func isJobPresent(_ name: FileName) throws(SpoolError) -> Bool {
    let directories = Self.jobDirectories.filter { $0 != .done }
    // This look settles nearly all cases: `new/` may be long, and is listed only after it.
    if try !places(of: name, in: directories).isEmpty { return true }
    // Moved out of cur/ with its owner's suffix left on.
    for directory in [Directory.hold, .new, .urgent] {
      if try list(directory).contains(where: { ClaimName($0)?.job.fileName == name }) { return true }
    }
    if try !places(of: name, in: directories).isEmpty { return true }
    return try !places(of: name, in: directories.reversed()).isEmpty
  }
}
