/// Names and outputs for the jobs of one list, each given once. They depend on the list alone, so that they are the
/// same when the list is taken again.
///
/// What is taken is kept as hashes of 64 bits, so that a million names fit 16 MiB. Two names of one hash do no harm:
/// the second gets a number.
package struct ListNames {
  private var taken: Set<Int> = []
  /// The last number of those names that are wanted more than once.
  private var numbers: [Int: Int] = [:]

  package init() {}

  /// Takes a name. Returns whether it was free.
  package mutating func take(_ name: [UInt8]) -> Bool { taken.insert(byteHash(name)).inserted }

  /// `wanted`, or what `numbered` makes of it with the first number, from 2 on, that is free.
  package mutating func name(_ wanted: [UInt8], numbered: (Int) -> [UInt8]) -> [UInt8] {
    if take(wanted) { return wanted }
    var number = numbers[byteHash(wanted)] ?? 1
    while true {
      number += 1
      let name = numbered(number)
      if take(name) {
        numbers[byteHash(wanted)] = number
        return name
      }
    }
  }
}
