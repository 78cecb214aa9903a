internal import CLinux
internal import Glibc
internal import SystemPackage

/// A program in the spool's `hooks/`.
package enum Hook: Sendable {
  /// Its path.
  case runnable(String)
  /// Somebody else could have written it: why it is not run.
  case refused(String)
}

extension Spool {
  /// The hook `name`; nil where there is none.
  package func hook(_ name: String) throws(SpoolError) -> Hook? {
    let directory = Path("hooks")
    let path = Path("hooks/\(name)")
    for (place, isProgram) in [(directory, false), (path, true)] {
      let status: FileStatus
      do throws(SpoolError) {
        status = try system.status(root, place)
      } catch  where error.errno == .noSuchFileOrDirectory {
        return nil
      }
      guard isProgram ? status.isRegular : status.isDirectory else {
        return .refused("\(place.display) is no \(isProgram ? "regular file" : "directory")")
      }
      guard status.owner == geteuid() || status.owner == 0 else {
        return .refused("\(place.display) belongs to another user")
      }
      guard status.permissions & 0o022 == 0 else {
        return .refused("\(place.display) can be written by others: chmod go-w it")
      }
      if isProgram, status.permissions & 0o111 == 0 {
        return .refused("\(place.display) is not executable: chmod +x it")
      }
    }
    guard try isInPlace() else { return .refused("the spool's path leads elsewhere by now") }
    // By the spool's name: an interpreter opens its script once more, when our own descriptor is closed. Only we or root can have changed it since.
    return .runnable("\(location)/hooks/\(name)")
  }
}
