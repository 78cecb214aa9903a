internal import CLinux
internal import Glibc
internal import SystemPackage

// Files and directories of a spool that are neither jobs nor their data: hooks, the workers' notes, and scratch files.

package enum Hook: Sendable {
  case runnable(String)
  /// Why it is not run: another user could have written it, or it is no program.
  case refused(String)

  private static let directory = OtherDirectory.hooks.path

  package static func mayExist(in spool: Spool) throws(SpoolError) -> Bool {
    guard let settings = spool.settings else { return false }
    return try spool.system.statusIfPresent(settings.directory.number, Self.directory) != nil
  }

  package static func find(_ name: String, in spool: Spool) throws(SpoolError) -> Hook? {
    guard let settings = spool.settings else { return nil }
    let path = Path("hooks/\(name)")
    for (place, isProgram) in [(Self.directory, false), (path, true)] {
      guard let status = try spool.system.statusIfPresent(settings.directory.number, place) else { return nil }
      if let reason = place.distrust(status, isDirectory: !isProgram, by: [geteuid(), 0]) { return .refused(reason) }
      if isProgram, status.permissions & 0o111 == 0 {
        return .refused("\(place.display) is not executable: chmod +x it")
      }
    }
    let isInPlace = try settings.directory === spool.directory ? spool.isInPlace() : settings.isInPlace(spool.system)
    guard isInPlace else { return .refused("the spool's path now leads to another directory") }
    // Not by a descriptor of its own: an interpreter opens its script again, and looks at its name.
    return .runnable(spool.path(forChild: "hooks/\(name)", in: settings))
  }
}

extension Path {
  /// Why what is here is not to be trusted: another user could have written it; nil if it is.
  fileprivate func distrust(_ status: FileStatus, isDirectory: Bool, by owners: Set<UInt32>) -> String? {
    guard isDirectory ? status.isDirectory : status.isRegular else {
      return "\(display) is not a \(isDirectory ? "directory" : "regular file")"
    }
    if !owners.contains(status.owner) { return "\(display) belongs to another user" }
    return status.permissions & 0o022 == 0 ? nil : "\(display) can be written by others: chmod go-w it"
  }
}

/// The public keys in the spool's `keys/`, by which signatures are judged. Whoever can write there decides what is
/// published, so nothing there counts if another user than this one, the spool's owner or root could have written some
/// of it.
package struct TrustedKeys: Sendable {
  /// Of OpenPGP, as gpg(1) exports them. All of these are paths for child processes.
  package private(set) var openPGP: [String] = []
  /// Of minisign(1) and signify(1).
  package private(set) var minisign: [String] = []
  /// ssh-keygen(1), ALLOWED SIGNERS.
  package private(set) var signers: String?
  /// ssh-keygen(1), KEY REVOCATION LISTS.
  package private(set) var revoked: String?

  private static let directory = OtherDirectory.keys.path

  /// - Throws: ``Defect``, ``SpoolError``.
  package init(_ spool: Spool) throws {
    guard let directory = try spool.system.statusIfPresent(spool.root, Self.directory) else { return }
    let owners = [geteuid(), 0, spool.identity.owner] as Set
    try Self.check(Self.directory.distrust(directory, isDirectory: true, by: owners))
    try Self.check(try spool.isInPlace() ? nil : "the spool's path now leads to another directory")
    for name in try spool.system.namesIfPresent(in: spool.root, Self.directory) {
      let place = Path(Array("keys/".utf8) + name.bytes)
      let status = try spool.system.status(spool.root, place)
      try Self.check(place.distrust(status, isDirectory: false, by: owners))
      try take(spool.path(forChild: "keys/\(String(decoding: name.bytes, as: UTF8.self))"), name)
    }
  }

  private mutating func take(_ path: String, _ name: FileName) throws(Defect) {
    switch String(decoding: name.bytes, as: UTF8.self) {
    case "allowed_signers": signers = path
    case "revoked_keys": revoked = path
    case let text where text.ends(with: ".gpg"): openPGP.append(path)
    case let text where text.ends(with: ".pub"): minisign.append(path)
    default:
      try Self.check(
        "keys/\(name.display) is none of NAME.gpg, NAME.pub, allowed_signers and revoked_keys (`gpg --dearmor` makes a "
          + ".gpg of an .asc)")
    }
  }

  private static func check(_ reason: String?) throws(Defect) {
    if let reason { throw Defect(line: nil, reason: reason) }
  }
}

/// The URL schemes that a spool's workers allow, for those that drop jobs. Only a hint: the worker decides.
package struct SchemeNote {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  private static let schemesPath = Path("protocols")
  private static let mostSchemeBytes = 1024

  /// The schemes that the worker which started last allows; nil if these are the default ones.
  /// - Throws: ``SpoolError``, EACCES if this user may not know.
  package func read() throws(SpoolError) -> Set<String>? {
    guard let bytes = try spool.contents(Self.schemesPath, limit: Self.mostSchemeBytes) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    return Set(text.split(at: ", \n").map { $0.lowercasedASCII })
  }

  /// Notes which schemes a worker allows that starts now. Writes only if that has changed.
  /// - Parameter schemes: nil for the default ones.
  package func write(_ schemes: Set<String>?) throws(SpoolError) {
    guard try read() != schemes else { return }
    guard let schemes else { return try spool.system.unlink(spool.root, Self.schemesPath) }
    try spool.write(Array((schemes.sorted().joined(separator: ",") + "\n").utf8), to: Self.schemesPath)
  }
}

/// A file whose presence says that a run has reported a full disk. Without it, cron would mail the report each
/// minute. It is in `tmp/`, so it is removed after 36 hours, and the next run reports the disk again.
package struct ShortageMark {
  static let name = FileName(".disk-short")
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Notes that the disk is full.
  /// - Returns: whether it was not noted before; also true if it cannot be noted.
  package func leave() -> Bool {
    do throws(SpoolError) {
      _ = try spool.system.createNew(spool.root, Path(.tmp, Self.name))
      return true
    } catch {
      return error.errno != .fileExists
    }
  }

  /// Takes ``leave()`` back when there is space again.
  package func remove() {
    // A mark that cannot be removed here is removed after 36 hours.
    try? spool.system.unlink(spool.root, Path(.tmp, Self.name))
  }
}

/// A file in the spool's `tmp/` that another program reads or writes, by its path. It is removed when it is let go of;
/// a worker that dies leaves it to `spoolrun clean`.
package final class ScratchFile: Sendable {
  package let path: String
  private let file: SharedFile
  private let spool: Spool

  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    file = try spool.system.createNew(spool.root, spool.temporary(FileName("standing"))).shared()
    path = spool.path(forChild: String(decoding: file.path.bytes, as: UTF8.self))
  }

  deinit {
    remove()
    try? file.close()
  }

  /// Removes its name now: a thread that has used it may let go of it late.
  package func remove() {
    // What cannot be removed is removed by the sweep.
    try? spool.system.unlink(spool.root, file.path)
  }

  package func write(_ bytes: [UInt8], at offset: Int64) throws(SpoolError) { try file.write(bytes, at: offset) }

  package func clear() throws(SpoolError) { try file.truncate(to: 0) }

  package func contents(limit: Int) throws(SpoolError) -> [UInt8] { try file.read(limit: limit) }
}
