internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool

/// The spool of the person who runs `spoolrun get`.
enum PersonalSpool {
  /// By the XDG Base Directory Specification, section 3: `$XDG_STATE_HOME/spoolrun`, where a relative path does not
  /// count, or else `~/.local/state/spoolrun`; nil without a home directory.
  static func location(_ variable: (String) -> String?) -> String? {
    if let state = variable("XDG_STATE_HOME"), state.begins(with: "/") { return "\(state)/spoolrun" }
    return variable("HOME").flatMap { $0.begins(with: "/") ? "\($0)/.local/state/spoolrun" : nil }
  }

  /// Where it is. Before anything is made, root becomes the user that it belongs to, or would: the owner of the nearest
  /// directory above it.
  /// - Throws: the exit status, after a message.
  static func become(ownerOf named: String?) throws -> String {
    if named == nil { for name in ["XDG_STATE_HOME", "HOME"] { UnreadableText.refuse(variable: name) } }
    guard let location = named ?? location({ name in getenv(name).map { String(cString: $0) } }) else {
      Terminal.error("neither XDG_STATE_HOME nor HOME is set: name a spool with --spool")
      throw ExitStatus.cannotCreate.code
    }
    var (parts, status) = (location.utf8.split(separator: 0x2F).map { String(Substring($0)) }, stat())
    var nearest: String { (location.begins(with: "/") ? "/" : "./") + parts.joined(separator: "/") }
    while !parts.isEmpty, stat(nearest, &status) != 0 { parts.removeLast() }
    try SpoolOwner.become(of: nearest)
    return location
  }

  /// Opens the spool at `location`; makes it when it is missing.
  /// - Parameter isNamed: whether a person has named it. It may be misspelled, so only its own last part is made.
  /// - Throws: the exit status, after a message.
  static func open(_ location: String, isNamed: Bool) throws -> Spool {
    if !isNamed { makeDirectories(above: location, mode: 0o700) }
    var status = stat()
    if stat("\(location)/\(Directory.files.rawValue)", &status) != 0 {
      do throws(SpoolError) { try Spool.create(location) } catch {
        Terminal.error("\(escaped(location)) cannot be created: \(error)")
        throw ExitStatus.cannotCreate.code
      }
    }
    return try SpoolOpening.open(location, for: .changing)
  }
}

/// Makes those directories above `path` that are missing. An error shows when what is at `path` is made or opened.
func makeDirectories(above path: String, mode: mode_t) {
  for slash in path.utf8.indices.dropFirst() where path.utf8[slash] == UInt8(ascii: "/") {
    _ = mkdir(String(path[..<slash]), mode)
  }
}
