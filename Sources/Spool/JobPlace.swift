/// Where a job file stands now: a directory of the spool and its name there, which in `cur/` has the owner behind it.
package struct JobPlace: Hashable, Sendable {
  package let directory: Directory
  package let name: FileName
  /// Tells one job that was seen twice on its way from two jobs of one name.
  let inode: UInt64

  /// `DIRECTORY/NAME`, safe for a terminal.
  package var display: String { path.display }

  var path: Path { Path(directory, name) }
}

extension Spool {
  /// The directories that hold jobs, in the order in which a job comes through them: one that moves on meanwhile is rather seen twice than not at all.
  static let jobDirectories: [Directory] = [.new, .cur, .partial, .hold, .failed, .done]

  /// Where the jobs of this name stand, by one look: what moves meanwhile may be missed or seen twice (protocol, invariant 10).
  package func places(of name: FileName, in directories: [Directory]? = nil) throws(SpoolError) -> [JobPlace] {
    var places: [JobPlace] = []
    for directory in directories ?? Self.jobDirectories {
      let names = directory == .cur ? try list(.cur).filter { ClaimName($0)?.job.fileName == name } : [name]
      for name in names {
        guard let status = try self.status(directory, name) else { continue }
        places.append(JobPlace(directory: directory, name: name, inode: status.inode))
      }
    }
    return places
  }

  /// Whether a job of this name, other than a done one, is there. Looks in the order of a job's way and in the reverse: a job on
  /// its way in either direction is seen by one of the two.
  func isJobPresent(_ name: FileName) throws(SpoolError) -> Bool {
    let directories = Self.jobDirectories.filter { $0 != .done }
    // What is seen once is there: `new/` may be long, and is listed for what is hardly anybody's.
    if try !places(of: name, in: directories).isEmpty { return true }
    // Moved out of cur/ with its owner's suffix left on.
    for directory in [Directory.hold, .new] {
      if try list(directory).contains(where: { ClaimName($0)?.job.fileName == name }) { return true }
    }
    if try !places(of: name, in: directories).isEmpty { return true }
    return try !places(of: name, in: directories.reversed()).isEmpty
  }
}
