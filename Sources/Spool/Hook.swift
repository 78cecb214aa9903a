internal import CLinux
internal import Glibc
internal import SystemPackage

/// A program in the spool's `hooks/`.
package enum Hook: Sendable {
  /// The program's path.
  case runnable(String)
  /// Why it is not run: another user could have written it, or it is no program.
  case refused(String)

  private static let directory = Path("hooks")

  /// Whether there may be hooks.
  package static func mayExist(in spool: Spool) throws(SpoolError) -> Bool { try spool.exists(Self.directory) }

  /// The hook `name`; nil where there is none.
  package static func find(_ name: String, in spool: Spool) throws(SpoolError) -> Hook? {
    let path = Path("hooks/\(name)")
    for (place, isProgram) in [(Self.directory, false), (path, true)] {
      guard let status = try spool.system.statusIfPresent(spool.root, place) else { return nil }
      guard isProgram ? status.isRegular : status.isDirectory else {
        return .refused("\(place.display) is not a \(isProgram ? "regular file" : "directory")")
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
    guard try spool.isInPlace() else { return .refused("the spool's path now leads to another directory") }
    // Not by a descriptor of its own: an interpreter opens its script again, and looks at its name.
    return .runnable(spool.path(forChild: "hooks/\(name)"))
  }
}
