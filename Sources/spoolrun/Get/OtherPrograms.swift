internal import ArgumentParser
internal import Glibc
internal import Spool

/// Options of `get` that curl and wget have as well.
struct LoginOptions: ParsableArguments {
  @Option(
    name: [.customShort("u"), .customLong("user")],
    help: ArgumentHelp("Log in as this user. Others may see it in ps(1): --netrc is safer.", valueName: "name:password")
  ) var user: String?

  @Flag(name: [.customShort("n"), .customLong("netrc")], help: "Use the logins in ~/.netrc.") var netrc = false

  @Option(help: ArgumentHelp("Proxy for all transfers. (default: by the environment)", valueName: "url"))
  var proxy: String?

  func validate() throws {
    do throws(Defect) { _ = try asked() } catch { throw ValidationError("--\(error.reason)") }
  }

  /// What takes the place of keys in `defaults`.
  var keys: NetworkKeys? { try? asked().network }

  private func asked() throws(Defect) -> JobRequest {
    var asked = JobRequest()
    let given = ["netrc": netrc ? "yes" : nil, "proxy": proxy]
    for key in JobKey.network { if let text = given[key.name] ?? nil { try asked.set(key, text) } }
    return asked
  }

  /// The URLs with the login in those that have none.
  func added(to urls: [String]) throws -> [String] {
    guard let user else { return urls }
    if urls.isEmpty {
      throw ExitStatus.refusal("--user needs the URLs, also to go on with them; for a list, use --netrc", by: "get")
    }
    let parts = user.split(at: ":", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
    guard let password = parts.count == 2 ? parts[1] : Terminal.password(of: user) else {
      throw ExitStatus.refusal("--user needs NAME:PASSWORD without a terminal; --netrc is safer", by: "get")
    }
    let login = "\(percentEncoded(parts[0], keeping: "")):\(percentEncoded(password, keeping: ""))@"
    return urls.map { url in
      guard let mark = url.utf8.firstRange(of: "://".utf8) else { return url }
      let authority = url.utf8[mark.upperBound...].prefix { !"/?#".utf8.contains($0) }
      return authority.contains(UInt8(ascii: "@")) ? url : url[..<mark.upperBound] + login + url[mark.upperBound...]
    }
  }
}

/// Options that curl, wget and aria2 have and spoolrun calls otherwise, or does not need.
enum ForeignOption {
  static let noStream =
    "nothing of a file is shown before all of it is verified: `spoolrun get -o FILE URL && tar xzf FILE`"

  private static let answers: [(options: Set<String>, answer: String)] = [
    (["-c", "-C", "--continue", "--continue-at"], "it always goes on where it stopped: leave this out"),
    (["-O", "--output-document", "--remote-name-all"], "the URL names the file; -o FILE gives another name"),
    (["-P", "-d", "--directory-prefix", "--output-dir", "--dir", "--directory"], "-o DIR/ names the directory"),
    (["-j", "-Z", "--jobs", "--parallel"], "several files are fetched at a time anyway: leave this out"),
    (["--checksum", "--checksums"], "--sha256 HEX, or another digest by its name"),
    (["-i", "--input-file"], "--from FILE reads a list"),
    (
      ["-b", "--background"],
      "`spoolrun add URL` leaves a file to a worker in the background; a cookie is -H 'Cookie: NAME=VALUE'"
    ),
    (["-x"], "--proxy URL is for a proxy, --connections N for several connections"),
    (["-k", "--insecure", "--no-check-certificate"], "certificates are checked; --cacert FILE trusts another"),
    (
      ["-L", "-f", "-S", "--location", "--fail", "--show-error"],
      "redirects are followed, errors are told: leave this out"
    ),
    (["-N", "--timestamping"], "--overwrite gets it again; `spoolrun subscribe --entries file` keeps a file current"),
    (["-nc", "--no-clobber"], "what is there already is never fetched again: leave this out"),
    (["-r", "-m", "-p", "--recursive", "--mirror"], "no web site is crawled; --from FILE gets the files of a list"),
    (["-A", "-U"], "--user-agent TEXT"), (["-e"], "--referer URL"), (["-t", "--retry"], "--tries N"),
    (["--netrc-file"], "-n reads ~/.netrc; `netrc: FILE` in ~/.config/spoolrun/defaults names another"),
    (["--ask-password", "--http-user", "--http-password", "--password"], "-u NAME asks a terminal for the password"),
    (["--load-cookies", "--cookie"], "`cookies: FILE` in ~/.config/spoolrun/defaults, or -H 'Cookie: NAME=VALUE'"),
    (["--create-dirs"], "missing directories are made anyway: leave this out"),
    (["--max-speed", "--max-download-limit"], "--limit-rate RATE"), (["-R", "--remote-time"], "--times"),
    (["-I", "-X", "--head", "--request"], "files are fetched, and nothing else; curl(1) can ask otherwise"),
    (["-T", "--connect-timeout", "--read-timeout"], "--timeout TIME"),
    (["--max-time"], "--timeout 'IDLE TOTAL', such as '60s 1h', is for each request"),
  ]

  /// What people expect of other commands.
  private static let expected: [(commands: Set<String>, options: Set<String>, answer: String)] = [
    (["init"], ["--group"], "SEVERAL USERS in spool(5) says how a group drops jobs"),
    (["subscribe"], ["--interval"], "--every TIME says how often it is checked"),
    (["status"], ["--failed"], "`spoolrun status` names those that failed, `spoolrun explain NAME` says why"),
    (["run"], ["--mail"], "cron(8) mails what it prints; the hook failed-mail, each failure"),
    (
      ["add", "subscribe"],
      [
        "-u", "--user", "-n", "--netrc", "--netrc-file", "--http-user", "--http-password", "--password",
        "--ask-password",
      ],
      "write `netrc: FILE` into SPOOL/defaults, or use a URL such as https://NAME:PASSWORD@host/file"
    ),
    (["add", "subscribe"], ["-x", "--proxy"], "write `proxy: URL` into SPOOL/defaults"),
    (["add", "subscribe"], ["--load-cookies", "--cookie"], "write `cookies: FILE` into SPOOL/defaults"),
    (["add", "subscribe"], ["-R", "--remote-time"], "only `get` sets the times of files, by --times"),
  ]

  /// Exits with status 64, after a line that says what to write instead.
  static func refuse(in arguments: [String]) {
    guard let command = arguments.first else { return }
    for (argument, next) in zip(arguments, arguments.dropFirst() + [""]).prefix(while: { $0.0 != "--" }).dropFirst() {
      let name = String(argument.prefix(before: "="))
      let row = expected.first { $0.commands.contains(command) && $0.options.contains(name) }
      let other = row.map { (name, $0.answer) }
      guard let (option, answer) = other ?? (["get", "add"].contains(command) ? answer(to: argument) : nil) else {
        continue
      }
      let isStream = next == "-" || argument.ends(with: "O-") || argument.ends(with: "=-")
      if command == "get", isStream, ["-O", "--output-document"].contains(option) {
        ExitStatus.exitOfUsage("\(option): \(noStream); see `spoolrun get --help`")
      }
      ExitStatus.exitOfUsage("\(option): \(answer); see `spoolrun \(command) --help`")
    }
  }

  /// The first option in a word such as `-qO-` or `--continue=yes` that has an answer, and this; nil if there is none.
  static func answer(to argument: String) -> (option: String, answer: String)? {
    let isLong = argument.begins(with: "--")
    guard isLong || argument.begins(with: "-") else { return nil }
    // `-dash` is the name of a job rather.
    let letters = argument.unicodeScalars.dropFirst().prefix { $0 != "=" }.filter { $0 != "d" }
    let options = isLong ? [String(argument.prefix(before: "="))] : [argument] + letters.map { "-\($0)" }
    for option in options {
      if let row = answers.first(where: { $0.options.contains(option) }) { return (option, row.answer) }
      // What follows it may be its value.
      if ["-j", "-o", "-u", "-H"].contains(option) { return nil }
    }
    return nil
  }
}
