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

  /// Opens it; makes it, and the directories above it, when it is missing.
  /// - Throws: the exit status, after a message.
  static func open(_ named: String?) throws -> Spool {
    if named == nil { for name in ["XDG_STATE_HOME", "HOME"] { UnreadableText.refuse(variable: name) } }
    guard let location = named ?? location({ name in getenv(name).map { String(cString: $0) } }) else {
      Terminal.error("neither XDG_STATE_HOME nor HOME is set: name a spool with --spool")
      throw ExitStatus.cannotCreate.code
    }
    // A spool that was named may be misspelled; only its own last part is made.
    if named == nil { makeDirectories(above: location, mode: 0o700) }
    try SpoolOwner.become(of: location)
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
