internal import CLinux
internal import Glibc
internal import Spool

/// A spool where a command expects the names of jobs: `spoolrun hold SPOOL NAME`, as with the commands that take a
/// spool there.
enum NamedSpool {
  /// Call this before the command changes anything.
  /// - Parameter option: the spool of `--spool`; with it, all names are those of jobs.
  /// - Throws: the exit status, after a message.
  static func refuse(among names: [String], of command: String, _ option: SpoolOption) throws {
    guard option.spool == nil, let name = names.first(where: { isSpool($0) && !isJob($0) }) else { return }
    let place = escaped(name)
    Terminal.error(
      "\(place) is a spool, and no job of this name is there: `spoolrun \(command) --spool \(place)` names a spool; "
        + "nothing is done")
    throw ExitStatus.usage.code
  }

  static func isSpool(_ path: String) -> Bool {
    [Directory.new, .cur, .tmp].allSatisfy { directory in
      var status = stat()
      return stat("\(path)/\(directory.rawValue)", &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
  }

  private static func isJob(_ name: String) -> Bool {
    let (owner, boot) = WorkerID.current()
    // A spool that cannot be opened is reported by the command itself.
    guard let spool = try? Spool(SpoolOpening.defaultLocation, owner: owner, boot: boot),
      let place = try? spool.splitClaim(Array(name.utf8))
    else { return false }
    return (try? spool.places(of: place.1).isEmpty) == false
  }
}
