internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage

/// nil where a path leads to nothing that this user can see.
func fileStatus(at path: String) -> stat? {
  var status = stat()
  return stat(path, &status) == 0 ? status : nil
}

func isDirectory(_ path: String) -> Bool { fileStatus(at: path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false }

/// The part of a path that is there, and the rest, which may still have to come.
func existingPart(of path: String) -> (there: String, rest: Substring) {
  var end = path.endIndex
  while end > path.startIndex, fileStatus(at: String(path[..<end])) == nil {
    end = path.utf8[..<end].lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
  }
  let top = path.begins(with: "/") ? "/" : "."
  return (end > path.startIndex ? String(path[..<end]) : top, path[end...])
}

/// Root works on another user's spool as that user. Files that root leaves there could not be read by the owner's
/// workers. And a spool's owner must not be able to make root write, or run a hook.
enum SpoolOwner {
  /// Makes this process the spool's owner, for good, if it is root and the spool belongs to somebody else. Must be
  /// called before the process has threads or files of its own.
  /// - Returns: what root has looked at: the path may lead elsewhere when it is opened. nil if this is not root.
  @discardableResult static func become(of location: String) throws -> stat? {
    // If it does not exist, its opening reports that.
    guard geteuid() == 0, let status = fileStatus(at: location) else { return nil }
    if status.st_uid == 0 { return status }
    guard let account = Account(status.st_uid, group: status.st_gid) else { throw refusal(status.st_uid, "getpwuid") }
    // The groups first: only root may change them.
    guard account.name.map({ initgroups($0, account.group) }) ?? setgroups(0, nil) == 0 else {
      throw refusal(status.st_uid, "setgroups")
    }
    guard setgid(account.group) == 0 else { throw refusal(status.st_uid, "setgid") }
    guard setuid(status.st_uid) == 0 else { throw refusal(status.st_uid, "setuid") }
    // setuid(2) of root sets the saved user id as well, so the process cannot become root again.
    guard setuid(0) != 0, geteuid() == status.st_uid else { throw refusal(status.st_uid, "setuid") }
    // sftp's known hosts, and the shell of a gate.
    setenv("HOME", account.home, 1)
    for variable in ["USER", "LOGNAME"] {
      if let name = account.name { setenv(variable, name, 1) } else { unsetenv(variable) }
    }
    return status
  }

  private static func refusal(_ user: uid_t, _ call: String) -> any Error {
    let reason = Errno(rawValue: errno)
    return ExitStatus.inputOutput.after(
      "cannot become user \(user), the spool's owner: \(call): \(reason); run spoolrun as that user")
  }

  private struct Account {
    /// nil for a user without an account.
    let name: String?
    let group: gid_t
    let home: String

    /// - Parameter group: for a user without an account.
    /// - Returns: nil if the accounts cannot be read; errno says why.
    init?(_ user: uid_t, group: gid_t) {
      errno = 0
      guard let entry = getpwuid(user) else {
        // getpwuid(3): these mean that there is no such user.
        guard [0, ENOENT, ESRCH, EBADF, EPERM].contains(errno) else { return nil }
        (name, self.group, home) = (nil, group, "/")
        return
      }
      name = String(cString: entry.pointee.pw_name)
      self.group = entry.pointee.pw_gid
      home = String(cString: entry.pointee.pw_dir)
    }
  }
}
