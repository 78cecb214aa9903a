internal import Glibc
internal import Spool

/// Text that is not UTF-8. Names of jobs and of lists are taken as the bytes that they are. Anything else, such as a
/// path or a URL, would become another one: U+FFFD would take the place of such bytes.
enum UnreadableText {
  /// Options whose values are taken as bytes.
  private static let options: Set = ["--name", "--from"]
  /// Commands whose arguments are names of jobs.
  private static let commands: Set = [
    "hold", "release", "retry", "prioritise", "prioritize", "cancel", "verify", "status",
  ]
  /// Options of these commands with a value that is no name of a job.
  private static let paths: Set = ["--spool", "--directory", "-d", "--textfile"]

  /// Exits with status 64 if an argument or SPOOLRUN_SPOOL is not UTF-8 and would be taken for text.
  /// - Parameter arguments: without the program's name.
  static func refuse(in arguments: [[UInt8]]) {
    if let index = first(in: arguments) { exit(of: escaped(arguments[index])) }
    refuse(variable: "SPOOLRUN_SPOOL")
  }

  /// Exits with status 64 if this variable of the environment is not UTF-8.
  static func refuse(variable name: String) {
    if let value = getenv(name), String(validatingCString: value) == nil { exit(of: name) }
  }

  private static func exit(of what: String) -> Never {
    Terminal.error(
      "\(what): not UTF-8 text, as all but the names of jobs and lists must be; a symbolic link can give a path such"
        + " a name")
    Glibc.exit(ExitStatus.usage.rawValue)
  }

  /// The place of the first argument that is refused; nil if there is none.
  static func first(in arguments: [[UInt8]]) -> Int? {
    let texts = arguments.map { String(decoding: $0, as: UTF8.self) }
    let command = texts.first { !$0.begins(with: "-") } ?? ""
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
