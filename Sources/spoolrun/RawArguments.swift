internal import CLinux
internal import Spool

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
