internal import Glibc
internal import Spool

/// A job's name may begin with a dash, and then it looks like options: `hold -dash` would be `-d -a -s -h`, and print the help with status 0.
enum DashedName {
  /// The options of one letter that any command has, without `-h`, which goes alone.
  static let letters = Set("vwjod".unicodeScalars)

  /// Ends the process, status 64, where an argument in front of `--` begins with one dash and is no such options. `-j` may have its value behind it.
  /// - Parameter arguments: without the program's name.
  static func refuse(in arguments: [String]) {
    guard let name = first(in: arguments) else { return }
    Terminal.error(
      "\(escaped(name)): no such option; a name that begins with a dash goes behind `--`, a value behind `=`")
    exit(ExitStatus.usage.rawValue)
  }

  static func first(in arguments: [String]) -> String? {
    arguments.prefix { $0 != "--" }.first { argument in
      guard argument.hasPrefix("-"), !argument.hasPrefix("--"), argument != "-", argument != "-h" else { return false }
      return argument.unicodeScalars.dropFirst().prefix { $0 != "j" }.contains { !letters.contains($0) }
    }
  }
}
