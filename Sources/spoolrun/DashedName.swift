internal import Glibc
internal import Spool

/// A job's name may begin with a dash. ArgumentParser would parse it as options: `hold -dash` would be `-d -a -s -h`,
/// which prints the help and exits with status 0.
enum DashedName {
  /// The one-letter options of all commands. `-h` is not among them: it is accepted only by itself.
  static let letters = Set("vwjody".unicodeScalars)

  /// Exits with status 64 if an argument before `--` begins with a single dash and has a letter that is no option.
  /// The value of `-j` may follow it directly.
  /// - Parameter arguments: without the program's name.
  static func refuse(in arguments: [String]) {
    guard let name = first(in: arguments) else { return }
    Terminal.error(
      "\(escaped(name)): unknown option; write `--` before a name that begins with a dash, and `=` before such a value")
    exit(ExitStatus.usage.rawValue)
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
