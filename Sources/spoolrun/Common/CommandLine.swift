internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus

/// The command line as the kernel passed it. File names are bytes; in the strings that ArgumentParser gets, U+FFFD
/// replaces what is not UTF-8.
enum RawArguments {
  /// The program's name and its arguments; empty if the caller of execve(2) passed neither.
  static let all: [[UInt8]] = {
    var arguments: [[UInt8]] = []
    while var next = spoolrun_argument(Int32(arguments.count)) {
      var bytes: [UInt8] = []
      while next.pointee != 0 {
        bytes.append(UInt8(bitPattern: next.pointee))
        next += 1
      }
      arguments.append(bytes)
    }
    return arguments
  }()

  /// The bytes of each of `arguments`, which are on the command line in this order, perhaps after `--option=`.
  static func bytes(of arguments: [String]) -> [[UInt8]] {
    var rest = all[...]
    return arguments.map { argument in
      guard argument.unicodeScalars.contains("\u{FFFD}"),
        let index = rest.firstIndex(where: { isDecoded(value($0, argument), as: argument) })
      else { return Array(argument.utf8) }
      defer { rest = rest[(index + 1)...] }
      return value(rest[index], argument)
    }
  }

  /// What follows `--option=`, unless the whole is `argument`.
  private static func value(_ bytes: [UInt8], _ argument: String) -> [UInt8] {
    guard bytes.starts(with: "--".utf8), !isDecoded(bytes, as: argument),
      let equals = bytes.firstIndex(of: UInt8(ascii: "="))
    else { return bytes }
    return Array(bytes[(equals + 1)...])
  }

  private static func isDecoded(_ bytes: [UInt8], as argument: String) -> Bool {
    String(decoding: bytes, as: UTF8.self).exact == argument.exact
  }
}

/// Text that is not UTF-8. Names of jobs and of lists are taken as the bytes that they are. Anything else, such as a
/// path or a URL, would become another one: U+FFFD would take the place of such bytes.
enum UnreadableText {
  /// Options whose values are taken as bytes.
  private static let options: Set = ["--name", "--from"]
  /// Commands whose arguments are names of jobs.
  static let commands: Set = [
    "hold", "release", "retry", "prioritise", "prioritize", "cancel", "verify", "status", "wait", "explain",
  ]
  /// Options of these commands with a value that is no name of a job.
  static let paths: Set = ["--spool", "--directory", "-d", "--textfile"]

  /// Exits with status 64 if an argument or SPOOLRUN_SPOOL is not UTF-8 and would be taken for text.
  static func refuse(in arguments: [[UInt8]]) {
    if let index = first(in: arguments) {
      // A URL may contain a password, and so may what follows -u and -H.
      let words = arguments[max(0, index - 1)...index].map { String(decoding: $0, as: UTF8.self) }
      let isOfLogin = ["-u", "--user", "-H", "--header"].contains {
        words.first == $0 || words.last?.begins(with: $0) == true
      }
      let mayBeSecret = isOfLogin || arguments[index].contains { "@?".utf8.contains($0) }
      exit(of: mayBeSecret ? "one of the arguments" : escaped(arguments[index]))
    }
    refuse(variable: "SPOOLRUN_SPOOL")
  }

  /// Exits with status 64 if this variable of the environment is not UTF-8.
  static func refuse(variable name: String) {
    if let value = getenv(name), String(validatingCString: value) == nil { exit(of: name) }
  }

  private static func exit(of what: String) -> Never {
    ExitStatus.exitOfUsage(
      "\(what): not UTF-8 text, as all but the names of jobs and lists must be; a symbolic link can give a path such"
        + " a name")
  }

  /// The place of the first argument that is refused; nil if there is none.
  static func first(in arguments: [[UInt8]]) -> Int? {
    let texts = arguments.map { String(decoding: $0, as: UTF8.self) }
    let command =
      zip(texts, [""] + texts).first { !$0.begins(with: "-") && !options.union(paths).contains($1) }?.0 ?? ""
    return arguments.indices.first { index in
      if Array(texts[index].utf8) == arguments[index] { return false }
      let before = index > 0 ? texts[index - 1] : ""
      if options.contains(before) { return false }
      if texts[index].begins(with: "--") {
        // In `--option=VALUE`.
        return !options.contains { texts[index].begins(with: "\($0)=") }
      }
      // The job's name, and not its new URL.
      if command == "url", !texts[index].utf8.contains("://".utf8) { return paths.contains(before) }
      return !commands.contains(command) || paths.contains(before)
    }
  }
}

/// A job's name may begin with a dash. ArgumentParser would parse it as options: `hold -dash` would be `-d -a -s -h`,
/// which prints the help and exits with status 0.
enum DashedName {
  /// The one-letter options of all commands. `-h` is not among them: it is accepted only by itself.
  static let letters = Set("vwjodyqsuHn".unicodeScalars)

  /// Exits with status 64 if an argument before `--` begins with a single dash and has a letter that is no option.
  /// The value of `-j` may follow it directly.
  static func refuse(in arguments: [String]) {
    guard let name = first(in: arguments) else { return }
    // It may be a password.
    if !URLAsName.commands.contains(arguments.first ?? ""),
      let option = ["-u", "-H"].first(where: { name.begins(with: $0) })
    {
      ExitStatus.exitOfUsage("\(option): write a blank before its value")
    }
    ExitStatus.exitOfUsage(
      "\(escaped(name)): unknown option; write `--` before a name that begins with a dash, and `=` before such a value")
  }

  static func first(in arguments: [String]) -> String? {
    arguments.prefix { $0 != "--" }.first { argument in
      guard argument.begins(with: "-"), !argument.begins(with: "--"), !["-", "-h"].contains(argument) else {
        return false
      }
      return argument.unicodeScalars.dropFirst().prefix { $0 != "j" }.contains { !letters.contains($0) }
    }
  }
}

/// A URL in the place of a job's name. It is not quoted, because it may contain a password.
enum URLAsName {
  /// Those whose arguments are names of jobs; of `url`, the first one is.
  static let commands = UnreadableText.commands.union(["url"])

  /// Exits with status 64.
  static func refuse(in arguments: [String]) {
    guard let command = arguments.first, commands.contains(command) else { return }
    for (argument, before) in zip(arguments.dropFirst(), arguments) where !UnreadableText.paths.contains(before) {
      if argument.begins(with: "-") { continue }
      if argument.utf8.contains("://".utf8) {
        ExitStatus.exitOfUsage("a URL is not the name of a job: `spoolrun status` shows the names")
      }
      // Its new URL follows.
      if command == "url" { return }
    }
  }
}

/// What a person may have meant by a word that is no command.
enum Suggestion {
  /// What the commands are called elsewhere. A word may belong to several commands; the first one that exists counts.
  private static let synonyms: [(command: String, words: Set<String>)] = [
    ("add --from", ["import"]), ("verify --refetch", ["repair"]),
    ("get", ["download", "fetch", "wget", "curl"]),
    ("add", ["download", "fetch", "drop", "enqueue", "submit", "put", "push"]),
    ("subscribe", ["feed", "follow", "rss", "mirror", "sync"]), ("hold", ["pause", "suspend", "stop", "freeze"]),
    ("release", ["resume", "unpause", "continue", "unhold", "thaw"]),
    ("retry", ["rerun", "redo", "restart", "requeue", "again"]),
    ("prioritise", ["priority", "urgent", "bump", "raise", "promote", "nice", "renice", "hurry"]),
    ("cancel", ["unsubscribe", "rm", "remove", "delete", "del", "abort", "kill", "drop"]),
    ("status --metrics", ["metrics", "prometheus"]),
    ("status", ["ls", "list", "show", "info", "jobs", "queue", "ps", "stat", "top", "watch", "log", "failed"]),
    ("explain", ["why", "what", "reason"]), ("wait", ["join", "until", "await"]), ("url", ["edit", "relink", "link"]),
    ("verify", ["check", "test", "validate"]), ("clean", ["gc", "purge", "prune", "sweep", "cleanup"]),
    ("init", ["create", "new", "mkspool"]), ("--version", ["version"]),
    ("run", ["start", "work", "worker", "daemon", "serve"]),
  ]

  /// The command that is most like `word`; nil if none is.
  static func command(for word: String, among commands: [String]) -> String? {
    let word = word.lowercasedASCII
    if commands.contains(word) { return word }
    if let other = synonyms.first(where: {
      $0.words.contains(word)
        && ($0.command.begins(with: "-") || commands.contains(String($0.command.prefix(before: " "))))
    }) {
      return other.command
    }
    // One mistake in a short word, two in a longer one: any two words of four letters are four mistakes apart.
    let most = word.utf8.count <= 4 ? 1 : 2
    let near = commands.map { (command: $0, distance: distance(word, $0)) }.filter { $0.distance <= most }
    return near.min { $0.distance < $1.distance }?.command
  }

  /// The number of letters to insert, remove, replace, or exchange with their neighbour (optimal string alignment).
  static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var rows = [Array(0...right.count)]
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { best = min(best, rows[i - 1][j - 1] + 1) }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }

  /// For a URL in the place of a command or a spool. It is not quoted, because it may contain a password.
  private static let forURL =
    "this is a URL, not a spool: `spoolrun get URL` downloads it into the current directory, `spoolrun add URL` "
    + "drops it into a spool"

  /// - Throws: for a URL in the place of a spool.
  static func refuse(urlAsSpool location: String) throws {
    if location.utf8.contains("://".utf8) { throw ExitStatus.usage.after(forURL) }
  }

  /// What is wrong with the first argument if it is neither a command nor a spool, and what to write instead; nil if
  /// nothing is known to be wrong. Without this, the word would be the spool of the default command.
  static func complaint(about arguments: [String], commands: [String]) -> String? {
    guard let word = arguments.first, !commands.contains(word) else { return nil }
    if word.begins(with: "-") {
      // Three dashes are those of ArgumentParser's completions.
      guard !["-h", "--help"].contains(word), !word.begins(with: "---"),
        let command = arguments.first(where: { !$0.begins(with: "-") }), commands.contains(command),
        access(command, F_OK) != 0
      else { return nil }
      // Its value may be a password.
      let option = String(word.prefix(before: "="))
      return "\(escaped(option)): options follow the command: `spoolrun \(command) \(ShellWords.quoted(option))`"
    }
    if word.utf8.contains("://".utf8) { return forURL }
    guard !word.utf8.contains(0x2F), access(word, F_OK) != 0 else { return nil }
    let command = command(for: word, among: commands)
    // Of a single word, the default command says that it is no spool.
    let asks = arguments.contains("--help") || arguments.contains("-h")
    if command == nil, !asks, arguments.count == 1 || arguments[1].begins(with: "-") { return nil }
    let hint = command.map { "; did you mean `spoolrun \($0)`?" } ?? "; see `spoolrun --help`"
    return "\(escaped(word)): no such command, and no spool of this name\(hint)"
  }
}
